"""What a reader wants first of a run: totals by target, failures by cause and harm, and what changed."""
