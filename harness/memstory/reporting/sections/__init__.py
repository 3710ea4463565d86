"""What reports say, by subject: functions from a run, or from columns of several, to parts of a document."""

__all__ = [
    "case_steps",
    "cases",
    "columns",
    "comparison",
    "costs",
    "differences",
    "memories",
    "outcomes",
    "scores",
]
