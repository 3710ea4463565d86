"""Commands that look at the results of runs."""

__all__ = [
    "badge",
    "compare",
    "export",
    "gate",
    "merge",
    "rejudge",
    "rejudging",
    "report",
    "results_files",
    "show",
    "submit",
    "verify",
]
