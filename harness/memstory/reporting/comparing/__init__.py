"""Two runs or more side by side, and a run against its baseline: pure functions over runs."""
