"""Columns side by side: everything that a comparison of runs says, as data and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memstory.reporting.document import (
    DASH,
    Document,
    Markup,
    Note,
    Section,
    Sign,
    Table,
    join_words,
    page_note,
    shorten,
    sign_of,
    where_any,
)
from memstory.reporting.sections.cases import LEGEND
from memstory.reporting.sections.columns import (
    JUDGED,
    UNREADABLE,
    Column,
    columns_of,
    opponent,
    shard_name,
)
from memstory.reporting.sections.costs import (
    TIMED_STEPS,
    GrowthPoint,
    Latency,
    ModelCalls,
    calls_section,
    footprint_section,
    growth_points,
    growth_section,
    latencies,
    latency_section,
    model_calls,
)
from memstory.reporting.sections.differences import Difference, differences, metrics_of
from memstory.reporting.sections.memories import memories_section
from memstory.reporting.sections.outcomes import (
    REASON_LIMIT,
    CapabilityScore,
    ModelStory,
    Obligations,
    capability_scores,
    capability_table,
    causes,
    causes_section,
    essential_section,
    harms_in_words,
    models_by_story,
    obligations_by_column,
    obligations_section,
    stories_section,
    totals_parts,
)
from memstory.reporting.sections.scores import score_rows
from memstory.results.outcomes import CaseResult, Outcome
from memstory.results.runs import NamedRun, by_key, natural, some

RETRIEVAL: Final = "retrieval"
_ALSO_OPERATIONS: Final = ("restart", "crash", "fault", "parallel", "advance", RETRIEVAL)

APPENDIX = ("Stories", "Stories of one column")
"""Sections of all stories, which a page has last."""

INTERVALS = (
    "Mean difference over the questions that both were asked, with its 95% interval by paired bootstrap. "
    "▲ is better, ▼ worse, where the interval does not hold 0: the others may be chance. "
    "Metrics in which no column differs at all are left out."
)
CAPABILITIES = (
    "Passed of judged. After it: what was asked and could not be judged, which counts neither way: a column with "
    "many of those was asked much that it does not do. A story belongs to every group that its tags and needs name. "
    "Only stories that at least two columns were asked are grouped; the last line counts those of each column alone."
)
ALONE = "Stories about the internals of one memory, which ran in one column only: they compare nothing."
MATRIX = "Stories that at least two columns were asked. '-': this column was not asked."
FLIPS = "Stories that passed in one column and failed in another."
SCORES = (
    "From gold ids, cut to k by the harness: recall@k is the mean share of the right documents among the first k, "
    "ndcg@k rewards placing them early, mrr is the mean of 1 / rank of the first right one, abstention the share of "
    "unanswerable questions that got nothing. n is the number of questions."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One story and its outcome by column; a column that was not asked is not there."""

    story: str
    title: str
    outcomes: Mapping[str, Outcome]
    slug: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """One story that passed in one of two columns and failed in the other."""

    story: str
    column: str
    outcome: str
    against: str
    was: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """One story that some columns passed and others failed; `reason` is that of the first that failed."""

    story: str
    passed: Sequence[str]
    failed: Sequence[str]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many of the judged stories with one tag, or of one operation, each column passed: `[passed, judged]`."""

    kind: str
    name: str
    columns: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inability:
    """What a column could not do, and for how many stories; `outcome` is unsupported, error or invalid."""

    column: str
    outcome: str
    reason: str
    stories: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnInfo:
    """What made a column: it may differ from column to column, so it is shown.

    `complete` is False for a run that was cut short, `shard` says which part of a run it is, if it is only one.
    """

    column: str
    run: str
    target: str
    complete: bool
    shard: str
    counts: Mapping[Outcome, int]
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryScores:
    """The retrieval scores of one column for one story at one level, over all its questions that are not apart."""

    story: str
    level: str
    column: str
    questions: int
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDifference:
    """How one column differs from another in one metric of one story."""

    story: str
    column: str
    against: str
    difference: Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Columns side by side; flips and differences are between each column and the one that it is compared with."""

    columns: Sequence[ColumnInfo]
    capabilities: Sequence[CapabilityScore]
    rows: Sequence[ComparisonRow]
    shares: Sequence[Share]
    scored: Sequence[StoryScores]
    differences: Sequence[ScoreDifference]
    flips: Sequence[Flip]
    disagreements: Sequence[Disagreement]
    latencies: Sequence[Latency]
    growth: Sequence[GrowthPoint]
    inabilities: Sequence[Inability]
    owed: Mapping[str, Obligations]
    model_calls: Sequence[ModelCalls]
    models: Sequence[ModelStory]


def compare(runs: Sequence[NamedRun], against: Column | None = None) -> Comparison:
    """Return the comparison of runs without `run_differences`; `against` is the column that all are compared with."""
    columns = columns_of(runs)
    pairs = [(one, other) for one in columns if (other := opponent(one, columns, against)) is not None]
    return Comparison(
        columns=[_column_info(column) for column in columns],
        capabilities=capability_scores(columns),
        rows=rows_of(columns),
        shares=shares_of(columns),
        scored=[line for column in columns for line in _story_scores(column)],
        differences=[found for one, other in pairs for found in _differences(one, other)],
        flips=[flip for one, other in pairs for flip in flips_between(one, other)],
        disagreements=disagreements_of(columns),
        latencies=latencies(columns),
        growth=growth_points(columns),
        inabilities=inabilities_of(columns),
        model_calls=model_calls(columns),
        models=models_by_story(columns),
        owed=obligations_by_column(columns),
    )


def _column_info(column: Column) -> ColumnInfo:
    run, printed = column.run.run, column.run.run.fingerprint
    options = {f"option {name}": str(value) for name, value in printed.options.items()}
    return ColumnInfo(
        column=column.title,
        run=column.run.name,
        target=column.target,
        complete=run.complete,
        shard=shard_name(run),
        counts=column.counts,
        facts={
            **{name: ", ".join(values) for name, values in column.about.items()},
            **options,
            "memstory": printed.memstory,
            "python": printed.python,
            "platform": printed.platform,
        },
    )


def _story_scores(column: Column) -> list[StoryScores]:
    return [
        StoryScores(
            story=row.story,
            level=row.level,
            column=column.title,
            questions=row.questions,
            scores={name: value for name, value in row.scores.items() if name in metrics_of(case)},
        )
        for case in column.cases.values()
        for row in score_rows(case)
        if row.category is None
    ]


def _differences(column: Column, against: Column) -> list[ScoreDifference]:
    return [
        ScoreDifference(story=story, column=column.title, against=against.title, difference=found)
        for story, case in column.cases.items()
        if (before := against.cases.get(story)) and all(one.retrieval and one.scores for one in (before, case))
        for found in differences(before, case)
    ]


def rows_of(columns: Sequence[Column]) -> list[ComparisonRow]:
    """Return every story once, in natural order."""
    first: dict[str, CaseResult] = {}
    for column in columns:
        for story, case in column.cases.items():
            first.setdefault(story, case)
    return [
        ComparisonRow(
            story=story,
            title=first[story].title,
            slug=first[story].slug,
            outcomes={one.title: one.cases[story].outcome for one in columns if story in one.cases},
        )
        for story in sorted(first, key=natural)
    ]


def flips_between(column: Column, against: Column) -> Iterator[Flip]:
    """Yield the stories that both were judged on, and not alike."""
    for story in sorted(column.cases, key=natural):
        now, was = column.cases[story], against.cases.get(story)
        if was is not None and {now.outcome, was.outcome} == set(JUDGED):
            failed = now if now.outcome == "failed" else was
            yield Flip(
                story=story,
                column=column.title,
                outcome=now.outcome,
                against=against.title,
                was=was.outcome,
                reason=failed.reason or "",
            )


def disagreements_of(columns: Sequence[Column]) -> list[Disagreement]:
    """Return the stories on which columns that could be judged differ, in natural order."""
    found = []
    for row in rows_of(columns):
        passed, failed = ([title for title, was in row.outcomes.items() if was == word] for word in JUDGED)
        if passed and failed:
            first = next(one for one in columns if one.title == failed[0])
            reason = first.cases[row.story].reason or ""
            found.append(Disagreement(story=row.story, passed=passed, failed=failed, reason=reason))
    return found


def shares_of(columns: Sequence[Column]) -> list[Share]:
    """Return the shares by operation, then by tag; a group that nobody was judged on is left out."""
    groups = by_key(
        (group, story)
        for column in columns
        for story, case in column.cases.items()
        for group in [*(("operation", op) for op in _operations(case)), *(("tag", tag) for tag in case.tags)]
    )
    shares = [
        Share(kind=kind, name=name, columns={one.title: _counts(one, {*stories}) for one in columns})
        for (kind, name), stories in sorted(groups.items())
    ]
    return [share for share in shares if any(judged for _, judged in share.columns.values())]


def inabilities_of(columns: Sequence[Column]) -> list[Inability]:
    """Return for each column why stories could not be judged, the most frequent reason first."""
    found = []
    for column in columns:
        reasons = by_key(
            ((case.outcome, case.reason or "no reason was given"), story)
            for story, case in column.cases.items()
            if case.outcome not in (*JUDGED, "measured")
        )
        found += [
            Inability(column=column.title, outcome=outcome, reason=reason, stories=sorted(stories, key=natural))
            for (outcome, reason), stories in sorted(reasons.items(), key=lambda item: -len(item[1]))
        ]
    return found


def _operations(case: CaseResult) -> set[str]:
    """Return what a story does, as far as any trial of it came."""
    found = {step.op for trial in case.trials for step in trial.times}
    if case.retrieval:
        found.add(RETRIEVAL)
    return found & {*TIMED_STEPS, *_ALSO_OPERATIONS}


def _counts(column: Column, stories: set[str]) -> list[int]:
    judged = [column.cases[one].outcome for one in stories if one in column.cases]
    judged = [outcome for outcome in judged if outcome in JUDGED]
    return [judged.count("passed"), len(judged)]


def summary(comparison: Comparison) -> str:
    """Return what is compared, in a few sentences."""
    several = sum(len(row.outcomes) > 1 for row in comparison.rows)
    said = (
        f"Stories: {len(comparison.rows)}, of which {several} were asked of at least two columns. "
        f"Columns: {len(comparison.columns)}, which are targets of one run or of several."
    )
    shared = "; ".join(f"{name} {value}" for name, value in _shared_facts(comparison).items())
    partial = [f"{made.column} ({part})" for made in comparison.columns if (part := _partial(made))]
    return " ".join(
        [
            *_left_out(comparison),
            said,
            *([f"All were made with {shared}."] if shared else []),
            *([f"Not whole runs: {', '.join(partial)}."] if partial else []),
        ]
    )


def _left_out(comparison: Comparison) -> Iterator[str]:
    """Yield which stories are not in all the runs: no run is compared by what another was not asked."""
    runs = {made.column: made.run for made in comparison.columns}
    every = list(dict.fromkeys(runs.values()))
    held = by_key((tuple(dict.fromkeys(runs[column] for column in row.outcomes)), row.story) for row in comparison.rows)
    for holders, stories in held.items():
        if len(holders) < len(every):
            yield f"Left out because the runs differ, only in {' and '.join(holders)}: {some(stories)}."


def _shared_facts(comparison: Comparison) -> Mapping[str, str]:
    first, *others = (made.facts for made in comparison.columns)
    return {name: value for name, value in first.items() if all(facts.get(name) == value for facts in others)}


def _partial(made: ColumnInfo) -> str:
    """Return what is missing of a column's run, nothing if it is whole."""
    return ", ".join([*([f"only {made.shard}"] if made.shard else []), *([] if made.complete else ["cut short"])])


def comparison_sections(comparison: Comparison) -> list[Section]:
    """Return the tables that have rows, in order."""
    titles = [column.column for column in comparison.columns]
    capabilities = capability_table(comparison.capabilities, titles, "what is asked", in_full=True)
    every = [
        growth_section(comparison.growth),
        footprint_section(comparison.growth),
        obligations_section(comparison.owed, "column", begins_with_note=True),
        _columns(comparison),
        _made_with(comparison),
        _section("By capability", CAPABILITIES, capabilities),
        _stories(comparison, titles),
        _stories_alone(comparison),
        _flips(comparison),
        _scores(comparison, titles),
        _score_differences(comparison),
        latency_section(comparison.latencies),
        stories_section(comparison.models),
        calls_section(comparison.model_calls),
        _inabilities(comparison),
    ]
    return [section for section in every if section.parts]


def comparison_tables(comparison: Comparison) -> Document:
    """Return what is compared in a few sentences, then every table."""
    return [Note(summary(comparison)), *comparison_sections(comparison)]


def comparison_document(comparison: Comparison, columns: Sequence[Column], page: str = "") -> Document:
    """Return what differs first, by harm and cause, and the tables of every story last; `page` shows all the cases."""
    found = causes(columns)
    words = [harms_in_words(found), page and page_note(page, "side by side")]
    every = comparison_sections(comparison)
    return [
        Section(
            "Comparison",
            [Note(join_words([summary(comparison), *map(Markup, filter(None, words))], " "))],
            level=1,
        ),
        memories_section(columns, found, comparison.latencies),
        essential_section(columns),
        Section("Totals", totals_parts(columns, {})),
        causes_section(found),
        *(one for one in every if one.title not in APPENDIX),
        *(one for one in every if one.title in APPENDIX),
        LEGEND,
    ]


def _section(title: str, note: str, table: Table) -> Section:
    return Section(title, where_any(Note(Markup(note)), table))


def _columns(comparison: Comparison) -> Section:
    rows = [
        [
            one.column,
            f"{one.run} ({part})" if (part := _partial(one)) else one.run,
            ", ".join(f"{count} {name}" for name, count in one.counts.items() if count),
        ]
        for one in comparison.columns
    ]
    return Section("What is compared", where_any(Table(["column", "run", "outcomes"], rows)))


def _made_with(comparison: Comparison) -> Section:
    """Return each embedder, model, version … once, with the columns that have it."""
    shared = _shared_facts(comparison)
    columns = by_key(
        (fact, one.column) for one in comparison.columns for fact in one.facts.items() if fact[0] not in shared
    )
    rows = [[*fact, ", ".join(titles)] for fact, titles in sorted(columns.items())]
    return Section("Made with", where_any(Table(["what", "which", "columns"], rows, may_fold=True)))


def _stories(comparison: Comparison, titles: Sequence[str]) -> Section:
    rows = [
        [*_story_cells(row), *(sign_of(row.outcomes.get(title)) for title in titles)]
        for row in comparison.rows
        if len(row.outcomes) > 1
    ]
    return _section("Stories", MATRIX, Table(["story", "title", *titles], rows, may_fold=True))


def _story_cells(row: ComparisonRow) -> list[str]:
    return [f"{row.story} {row.slug or ''}".strip(), row.title or UNREADABLE]


def _stories_alone(comparison: Comparison) -> Section:
    rows = [
        [*_story_cells(row), column, Sign(outcome)]
        for row in comparison.rows
        if len(row.outcomes) == 1
        for column, outcome in row.outcomes.items()
    ]
    rows.sort(key=lambda cells: cells[2])
    return _section("Stories of one column", ALONE, Table(["story", "title", "column", "outcome"], rows, may_fold=True))


def _flips(comparison: Comparison) -> Section:
    rows = [
        [one.story, ", ".join(one.passed), ", ".join(one.failed), shorten(one.reason, REASON_LIMIT)]
        for one in comparison.disagreements
    ]
    header = ["story", "passed in", "failed in", "why it failed there first"]
    return _section("Flipped", FLIPS, Table(header, rows, may_fold=True))


def _scores(comparison: Comparison, titles: Sequence[str]) -> Section:
    values: dict[tuple[str, str, str], dict[str, str]] = {}
    questions: dict[tuple[str, str], int] = {}
    for line in comparison.scored:
        questions[line.story, line.level] = max(line.questions, questions.get((line.story, line.level), 0))
        for metric, value in line.scores.items():
            values.setdefault((line.story, line.level, metric), {})[line.column] = f"{value:.3f}"
    rows = [
        [*place, str(questions[place[:2]]), *(values[place].get(title, DASH) for title in titles)]
        for place in _by_story(values)
    ]
    table = Table(["story", "level", "metric", "n", *titles], rows, numbers=slice(3, None))
    return _section("Retrieval", SCORES, table)


def _score_differences(comparison: Comparison) -> Section:
    columns = list(dict.fromkeys((one.column, one.against) for one in comparison.differences))
    found: dict[tuple[str, str, str], dict[tuple[str, str], Difference]] = {}
    for one in comparison.differences:
        place = one.story, one.difference.level, one.difference.metric
        found.setdefault(place, {})[one.column, one.against] = one.difference
    rows = [
        [*place, str(max(one.questions for one in cells.values())), *(_difference(cells.get(pair)) for pair in columns)]
        for place in _by_story(found)
        for cells in [found[place]]
        if any(one.low or one.high for one in cells.values())
    ]
    header = ["story", "level", "metric", "n", *(f"{column} against {other}" for column, other in columns)]
    table = Table(header, rows, numbers=slice(3, None), may_fold=True)
    return _section("Differences in retrieval", INTERVALS, table)


def _by_story(places: Mapping[tuple[str, str, str], object]) -> list[tuple[str, str, str]]:
    """Return places with the levels and metrics of one story together, in the order in which they came up."""
    order = list(dict.fromkeys(place[:2] for place in places))
    return sorted(places, key=lambda place: (natural(place[0]), order.index(place[:2])))


def _difference(found: Difference | None) -> str:
    if found is None:
        return DASH
    if found.low == found.high == 0:
        return "0"
    mark = "▲ " if found.is_better else "▼ " if found.is_worse else ""
    return f"{mark}{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _inabilities(comparison: Comparison) -> Section:
    rows = [
        [one.column, Sign(one.outcome), str(len(one.stories)), shorten(one.reason, REASON_LIMIT), some(one.stories)]
        for one in comparison.inabilities
    ]
    table = Table(["column", "outcome", "n", "reason", "stories"], rows, may_fold=True)
    return Section("What could not be judged", where_any(table))
