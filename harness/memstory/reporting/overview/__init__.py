"""What a reader wants to know first about a run: totals by target, failures by cause and harm, and what changed."""
