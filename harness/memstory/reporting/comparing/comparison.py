"""Everything that a comparison of runs says, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memstory.reporting import views
from memstory.reporting.comparing.capability_scores import CapabilityScore, capability_scores
from memstory.reporting.comparing.columns import Column, columns_of, opponent
from memstory.reporting.comparing.growth import Grown, growth
from memstory.reporting.comparing.latency import Latency, latencies
from memstory.reporting.comparing.matrix import (
    Disagreement,
    Flip,
    Inability,
    Row,
    Share,
    disagreements_of,
    flips_between,
    inabilities_of,
    rows_of,
    shares_of,
)
from memstory.reporting.comparing.model_tables import ModelCalls, ModelStory, model_calls, models_by_story
from memstory.reporting.comparing.owed import Owed, owed_by
from memstory.reporting.comparing.paired import Difference, differences, metrics_of
from memstory.results.outcomes import OUTCOMES, CaseResult, Outcome
from memstory.results.runs import NamedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a column was made with: it may differ from column to column, so it is shown.

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
class Scored:
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

    columns: Sequence[Made]
    capabilities: Sequence[CapabilityScore]
    rows: Sequence[Row]
    shares: Sequence[Share]
    scored: Sequence[Scored]
    differences: Sequence[ScoreDifference]
    flips: Sequence[Flip]
    disagreements: Sequence[Disagreement]
    latencies: Sequence[Latency]
    growth: Sequence[Grown]
    inabilities: Sequence[Inability]
    owed: Mapping[str, Owed]
    model_calls: Sequence[ModelCalls]
    models: Sequence[ModelStory]


def compare(runs: Sequence[NamedRun], against: Column | None = None) -> Comparison:
    """Return the comparison of runs that `what_differs` has nothing against; `against` is compared with all others."""
    columns = columns_of(runs)
    pairs = [(one, other) for one in columns if (other := opponent(one, columns, against)) is not None]
    return Comparison(
        columns=[_made(column) for column in columns],
        capabilities=capability_scores(columns),
        rows=rows_of(columns),
        shares=shares_of(columns),
        scored=[line for column in columns for line in _scored(column)],
        differences=[found for one, other in pairs for found in _differences(one, other)],
        flips=[flip for one, other in pairs for flip in flips_between(one, other)],
        disagreements=disagreements_of(columns),
        latencies=latencies(columns),
        growth=growth(columns),
        inabilities=inabilities_of(columns),
        model_calls=model_calls(columns),
        models=models_by_story(columns),
        owed={column.title: found for column in columns if (found := owed_by(column.cases.values()))},
    )


def _made(column: Column) -> Made:
    run, printed = column.run.run, column.run.run.fingerprint
    options = {f"option {name}": str(value) for name, value in printed.options.items()}
    return Made(
        column=column.title,
        run=column.run.name,
        target=column.target,
        complete=run.complete,
        shard=views.shard_name(run),
        counts={name: _counted(column, name) for name in OUTCOMES},
        facts={
            **{name: ", ".join(values) for name, values in column.about.items()},
            **options,
            "memstory": printed.memstory,
            "python": printed.python,
            "platform": printed.platform,
        },
    )


def _counted(column: Column, outcome: Outcome) -> int:
    return sum(case.outcome == outcome for case in column.cases.values())


def _scored(column: Column) -> list[Scored]:
    return [
        Scored(
            story=row.story,
            level=row.level,
            column=column.title,
            questions=row.questions,
            scores={name: value for name, value in row.scores.items() if name in metrics_of(case)},
        )
        for case in column.cases.values()
        for row in views.score_rows(case)
        if row.category is None
    ]


def _differences(column: Column, against: Column) -> list[ScoreDifference]:
    return [
        ScoreDifference(story=story, column=column.title, against=against.title, difference=found)
        for story, case in column.cases.items()
        if _is_measured(case) and story in against.cases and _is_measured(against.cases[story])
        for found in differences(against.cases[story], case)
    ]


def _is_measured(case: CaseResult) -> bool:
    return bool(case.retrieval and case.scores)
