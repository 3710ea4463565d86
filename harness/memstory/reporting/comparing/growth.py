"""The cost of adding and searching as a memory grows: stories with the tag `growth`, one row per size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.comparing.columns import Column
from memstory.reporting.comparing.latency import Spread, spread
from memstory.results.outcomes import CaseResult
from memstory.results.recording import RetrievalRecord
from memstory.scoring.metrics import mean, recall_at_k

TAG: Final = "growth"
_MILLI: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """One column at one size: milliseconds for each memory added and for a search, both without the embedder's.

    `found` is the share of questions whose memory was among the first k. A column that was not measured has None, and
    `said` instead.
    """

    column: str
    story: str
    memories: int
    add_ms: float | None = None
    search: Spread | None = None
    found: float | None = None
    said: str = ""


def growth(columns: Sequence[Column]) -> list[Grown]:
    """Return a line for each column and size, the sizes in order."""
    sizes = {
        name: record.documents
        for column in columns
        for name, case in column.cases.items()
        if TAG in case.tags and (record := _record(case))
    }
    return [
        _grown(column.title, column.cases[name], size)
        for column in columns
        for name, size in sorted(sizes.items(), key=lambda one: one[1])
        if name in column.cases
    ]


def _grown(column: str, case: CaseResult, size: int) -> Grown:
    record = _record(case)
    if record is None or not record.seconds:
        # A reason begins with what happened: `not within 30 s: …`.
        said = (case.reason or "").partition(":")[0] if case.outcome == "unsupported" else case.outcome
        return Grown(column=column, story=case.name, memories=size, said=said if record is None else "-")
    added = max(0.0, record.seconds - (record.embedding_seconds or 0.0))
    return Grown(
        column=column,
        story=case.name,
        memories=size,
        add_ms=_MILLI * added / record.documents,
        search=spread(list(_searches(record))),
        found=mean(recall_at_k(one.retrieved, one.relevant, k=record.k) for one in record.questions),
    )


def _searches(record: RetrievalRecord) -> Iterator[float]:
    yield from (max(0.0, one.seconds - (one.embedding_seconds or 0.0)) for one in record.questions)


def _record(case: CaseResult) -> RetrievalRecord | None:
    return case.retrieval[0] if case.retrieval else None
