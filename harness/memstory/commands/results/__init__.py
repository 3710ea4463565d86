"""Commands that look at the results of runs."""
