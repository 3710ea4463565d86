"""Two runs or more side by side, and a run against its baseline: pure functions over results documents."""

from memstory.reporting.comparing.baseline import as_baseline
from memstory.reporting.comparing.columns import Run, columns_of, named_column
from memstory.reporting.comparing.comparison import Comparison, compare
from memstory.reporting.comparing.differences import differences_in_words
from memstory.reporting.comparing.gate import Gate, gate
from memstory.reporting.comparing.likeness import what_differs
from memstory.reporting.comparing.sections import as_markdown, as_text

__all__ = [
    "Comparison",
    "Gate",
    "Run",
    "as_baseline",
    "as_markdown",
    "as_text",
    "columns_of",
    "compare",
    "differences_in_words",
    "gate",
    "named_column",
    "what_differs",
]
