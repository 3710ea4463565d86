"""The results of a run as plain data: in memory, on disk and in every report."""

__all__ = [
    "containment",
    "folder",
    "likeness",
    "merging",
    "outcomes",
    "recording",
    "redaction",
    "runs",
    "secret_values",
    "totals",
]
