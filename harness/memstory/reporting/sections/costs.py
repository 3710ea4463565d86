"""What it cost: the time of operations, of adding and searching as a memory grows, and the calls of language models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

from memstory.contract.values import STAND_IN, ModelUse
from memstory.language.words import WORDS
from memstory.reporting.document import DASH, Markup, Note, Section, Sign, Table, where_any
from memstory.reporting.sections.columns import Column, trials_of
from memstory.results.outcomes import OUTCOMES, CaseResult, StepTime, TrialResult
from memstory.results.recording import Footprint, QuestionRecord, RetrievalRecord
from memstory.results.runs import by_key
from memstory.scoring.metrics import mean, recall_at_k

QUESTION: Final = "search (retrieval)"
GROWTH: Final = "growth"
"""The tag of stories with a row for each size of a memory."""

TIMED_STEPS: Final = tuple(word.name for word in WORDS.values() if word.is_timed)
"""The steps whose time is the memory's own; the others mostly wait."""

_MIDDLE, _SLOW = 0.5, 0.95
_MILLI: Final = 1000
_NO_EMBEDDER: Final = "none"
_TIMES_NOTE: Final = Markup(
    "Milliseconds of one call: the memory's own work, and what it waited for its embedder within that call (an "
    "embedder with a warm cache takes next to nothing). 'unknown' stands for a memory whose embedder is out of reach: "
    "only both together are known. '-' stands for one that names no embedder. Only stories that could be judged count; "
    "where columns could do different stories, the numbers are not of the same work."
)
_GROWTH_NOTE: Final = Markup(
    "Milliseconds without the embedder's: for each memory that is added, up to 10,000 of them in one call, and for a "
    "search, the middle and the slow end (p50 / p95). Found: the share of questions, each the very text of one memory, "
    "for which that memory was among the first results; a store that embeds more than the text finds none of them by "
    "vectors that are drawn by chance. A size that would take longer than the story allows is left out."
)

_FOOTPRINT_NOTE: Final = Markup(
    "What a memory takes of the machine once all was remembered: its files, those of a server that it started too, and "
    "the resident memory of its processes, Python and what it imports included. The latter needs `--isolate`: without "
    "it a memory has no process of its own."
)

_CALLS_NOTE: Final = Markup("""\
What the memory asked of its model, and what the model asked that talks for it; embeddings are left out. Passed: stories
of judged ones with such calls. Tokens are as the server counts them, '-' where it counts none. A model named 'scripted'
is rules of the story and 'replayed' a recording: they cost nothing and say nothing about quality. Stand-ins make no
calls and are left out.""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle and the slow end of some times, in milliseconds."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The times of one operation of one column, over `count` of them in the stories that could be judged.

    `memory` and `embedding` divide `whole`, call by call, over the `told` of them of which the target can say it; None
    where it can of none. `embeds` is False if the target names no embedder at all.
    """

    column: str
    operation: str
    count: int
    told: int
    whole: Spread
    memory: Spread | None
    embedding: Spread | None
    embeds: bool


class _TimedCall(NamedTuple):
    operation: str
    seconds: float
    embedding: float | None


def latencies(columns: Sequence[Column]) -> list[Latency]:
    """Return the times of every operation of every column."""
    found = []
    for column in columns:
        calls = by_key((one.operation, one) for one in _timed_calls(column))
        found += [_latency(column, name, calls[name]) for name in (*TIMED_STEPS, QUESTION) if name in calls]
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed.

    >>> percentile([4, 1, 2, 3], 0.5), percentile([4, 1, 2, 3], 0.95)
    (2, 4)
    """
    return sorted(values)[max(1, ceil(share * len(values))) - 1]


def latency_section(found: Sequence[Latency]) -> Section:
    """Return the times of each operation as a table, a row for each column."""
    ranked = sorted(found, key=lambda one: one.operation)
    rows = [[one.operation, one.column, _count(one), *_times(one)] for one in ranked]
    header = ["operation", "column", "n", "memory p50 ms", "memory p95 ms", "embedding p50 ms", "embedding p95 ms"]
    header += ["both p50 ms", "both p95 ms"]
    return Section("Time", where_any(Note(_TIMES_NOTE), Table(header, rows, numbers=slice(2, None), may_fold=True)))


def _count(one: Latency) -> str:
    return str(one.count) if one.told in (0, one.count) else f"{one.count} ({one.told} known)"


def _times(one: Latency) -> list[str]:
    if not one.embeds:
        return [*_cells(one.whole), DASH, DASH, *_cells(one.whole)]
    if one.memory is None or one.embedding is None:
        return [*["unknown"] * 4, *_cells(one.whole)]
    return [*_cells(one.memory), *_cells(one.embedding), *_cells(one.whole)]


def _cells(spread: Spread) -> list[str]:
    return [f"{spread.p50_ms:.2f}", f"{spread.p95_ms:.2f}"]


def _latency(column: Column, operation: str, timed: Sequence[_TimedCall]) -> Latency:
    told = [one for one in timed if one.embedding is not None]
    return Latency(
        column=column.title,
        operation=operation,
        count=len(timed),
        told=len(told),
        whole=spread([one.seconds for one in timed]),
        memory=spread([max(0.0, one.seconds - (one.embedding or 0.0)) for one in told]) if told else None,
        embedding=spread([one.embedding or 0.0 for one in told]) if told else None,
        embeds="embedder" in column.about,
    )


def spread(seconds: Sequence[float]) -> Spread:
    """Return the middle and the slow end of times in seconds."""
    return Spread(p50_ms=_MILLI * percentile(seconds, _MIDDLE), p95_ms=_MILLI * percentile(seconds, _SLOW))


def _timed_calls(column: Column) -> Iterator[_TimedCall]:
    for case in column.cases.values():
        for trial in case.trials if case.outcome in ("passed", "failed", "measured") else ():
            # Where nothing embeds, there is nothing to tell.
            untold = None if trial.recording.about.get("embedder", _NO_EMBEDDER) != _NO_EMBEDDER else 0.0
            for operation, timed in _calls(trial):
                if not timed.seconds:
                    continue  # a baseline keeps no times
                told = timed.embedding_seconds
                yield _TimedCall(operation, timed.seconds, untold if told is None else told)


def _calls(trial: TrialResult) -> Iterator[tuple[str, StepTime | QuestionRecord]]:
    yield from ((step.op, step) for step in trial.times)
    yield from ((QUESTION, asked) for record in trial.recording.retrieval for asked in record.questions)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPoint:
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
    footprint: Footprint | None = None
    said: str = ""


def growth_points(columns: Sequence[Column]) -> list[GrowthPoint]:
    """Return a line for each column and size, the sizes in order."""
    sizes = {
        name: record.documents
        for column in columns
        for name, case in column.cases.items()
        if GROWTH in case.tags and (record := _record(case))
    }
    return [
        _growth_point(column.title, column.cases[name], size)
        for column in columns
        for name, size in sorted(sizes.items(), key=lambda one: one[1])
        if name in column.cases
    ]


def growth_section(found: Sequence[GrowthPoint]) -> Section:
    """Return the cost at each size as a table, a row for each column."""
    sizes = list(dict.fromkeys(f"{one.memories:,}" for one in found))
    points: dict[str, dict[str, GrowthPoint]] = {}
    for one in found:
        points.setdefault(one.column, {})[f"{one.memories:,}"] = one
    costs = [(what, size) for what in ("add", "search", "found") for size in sizes]
    rows = [[column, *(_growth_cell(of.get(size), what) for what, size in costs)] for column, of in points.items()]
    table = Table(["column", *(f"{what} {size}" for what, size in costs)], rows, numbers=slice(1, None))
    return Section("Growth", where_any(Note(_GROWTH_NOTE), table))


def footprint_section(found: Sequence[GrowthPoint]) -> Section:
    """Return what each column takes of the machine at each size as a table; nothing where no run says it."""
    rows = [
        [one.column, f"{one.memories:,}", _megabytes(one.footprint.disk_bytes),
         _megabytes(one.footprint.disk_bytes / one.memories * _MILLI), _megabytes(one.footprint.resident_bytes),
         DASH if one.footprint.processes is None else str(one.footprint.processes)]
        for one in sorted(found, key=lambda one: (one.column, one.memories))
        if one.footprint is not None
    ]  # fmt: skip
    header = ["column", "memories", "MB on disk", "MB on disk per 1,000", "MB resident", "processes"]
    return Section("Footprint", where_any(Note(_FOOTPRINT_NOTE), Table(header, rows, numbers=slice(1, None))))


def _megabytes(size: float | None) -> str:
    return DASH if size is None else f"{size / 1_000_000:,.2f}"


def _growth_cell(one: GrowthPoint | None, what: str) -> str:
    if one is None or one.add_ms is None or one.search is None or one.found is None:
        reason = one.said if one and what == "add" else DASH
        return Sign(reason) if reason in OUTCOMES else reason
    if what == "add":
        return f"{one.add_ms:.2f}"
    return f"{one.search.p50_ms:.2f} / {one.search.p95_ms:.2f}" if what == "search" else f"{one.found:.2f}"


def _growth_point(column: str, case: CaseResult, size: int) -> GrowthPoint:
    record = _record(case)
    if record is None or not record.seconds:
        # A reason begins with what happened: `not within 30 s: …`.
        said = (case.reason or "").partition(":")[0] if case.outcome == "unsupported" else case.outcome
        return GrowthPoint(column=column, story=case.name, memories=size, said=said if record is None else "-")
    added = max(0.0, record.seconds - (record.embedding_seconds or 0.0))
    return GrowthPoint(
        column=column,
        story=case.name,
        memories=size,
        add_ms=_MILLI * added / record.documents,
        search=spread([max(0.0, one.seconds - (one.embedding_seconds or 0.0)) for one in record.questions]),
        found=mean(recall_at_k(one.retrieved, one.relevant, k=record.k) for one in record.questions),
        footprint=record.footprint,
    )


def _record(case: CaseResult) -> RetrievalRecord | None:
    return case.retrieval[0] if case.retrieval else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalls:
    """What `steps` steps of one kind cost in one column, which passed `passed` of `judged` stories with such calls."""

    column: str
    model: str
    passed: int
    judged: int
    step: str
    steps: int
    use: ModelUse


def model_calls(columns: Sequence[Column]) -> list[ModelCalls]:
    """Return the calls of each column by model and step; nothing where no model was asked."""
    return [one for column in columns for one in _calls_of(column)]


def calls_section(found: Sequence[ModelCalls]) -> Section:
    """Return the calls as a table."""
    header = ["target", "model", "passed", "step", "n", "calls", "failed", "tokens in", "tokens out", "seconds"]
    rows = [
        [one.column, one.model, f"{one.passed} of {one.judged}", one.step, str(one.steps), str(one.use.calls),
         str(one.use.failed), _number(one.use.prompt_tokens), _number(one.use.answer_tokens), f"{one.use.seconds:.2f}"]
        for one in found
    ]  # fmt: skip
    table = Table(header, rows, numbers=slice(4, None))
    return Section("Calls of language models", where_any(Note(_CALLS_NOTE), table))


def _calls_of(column: Column) -> Iterator[ModelCalls]:
    uses: dict[tuple[str, str], list[ModelUse]] = defaultdict(list)
    stories: dict[str, dict[str, str]] = defaultdict(dict)
    for case, trial in trials_of([column]):
        for step, use in trial.model_uses():
            model = _model(trial.recording.about)
            uses[model, step].append(use)
            stories[model][case.id] = case.outcome
    for (model, step), found in sorted(uses.items()):
        outcomes = [*stories[model].values()]
        passed = outcomes.count("passed")
        yield ModelCalls(
            column=column.title, model=model, passed=passed, judged=passed + outcomes.count("failed"),
            step=step, steps=len(found), use=sum(found, ModelUse()),
        )  # fmt: skip


def _model(about: Mapping[str, str]) -> str:
    """Return the model inside the memory, and the one that talks, as the target named them."""
    named = [about.get("infer", "off"), about.get("chat", STAND_IN).removeprefix("shim: ")]
    return " and ".join(name for name in named if name != "off" and STAND_IN not in name.lower()) or "not named"


def _number(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"
