"""From a run to what people read: report.md, report.html, the terminal, comparisons, and the gate.

A report is a `document`: `sections` make its parts from runs, and `markdown`, `terminal` and `page` print them.
"""

__all__ = [
    "discrimination",
    "document",
    "gate",
    "large_runs",
    "markdown",
    "page",
    "sections",
    "terminal",
    "writing",
]
