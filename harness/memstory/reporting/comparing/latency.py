"""How long operations took: the middle and the slow end, by target and operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.reporting.document import evidence

OPERATIONS: Final = (
    "add", "get", "search", "list", "update", "delete", "feedback", "context", "say", "tool", "run",
)  # fmt: skip
"""Steps whose time is the memory's own; the others mostly wait."""

QUESTION: Final = "search (retrieval)"
_MIDDLE, _SLOW = 0.5, 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds of one operation of one column, over `count` of them in the stories that could be judged."""

    column: str
    operation: str
    count: int
    p50_ms: float
    p95_ms: float


def latencies(columns: Sequence[Column]) -> list[Latency]:
    """Return the times of every operation of every column; a search includes embedding its query."""
    return [
        Latency(
            column=column.title,
            operation=operation,
            count=len(seconds),
            p50_ms=1000 * percentile(seconds, _MIDDLE),
            p95_ms=1000 * percentile(seconds, _SLOW),
        )
        for column in columns
        for operation, seconds in _seconds(column).items()
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed.

    >>> percentile([4, 1, 2, 3], 0.5), percentile([4, 1, 2, 3], 0.95)
    (2, 4)
    """
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


def _seconds(column: Column) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in (*OPERATIONS, QUESTION)}
    for case in column.cases.values():
        for trial in case["trials"] if case["outcome"] in ("passed", "failed") else ():
            shown = evidence(case, trial)
            for step in shown["steps"]:
                if step["op"] in found:
                    found[step["op"]].append(step["seconds"])
            for record in shown["retrieval"]:
                found[QUESTION] += [asked["seconds"] for asked in record["questions"]]
    return {name: seconds for name, seconds in found.items() if seconds}
