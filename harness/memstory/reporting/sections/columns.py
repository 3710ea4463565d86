"""What a report is about: each target of each run is a column, and what all sections ask of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from memstory.contract.errors import SetupError
from memstory.contract.values import STAND_IN
from memstory.reporting.document import Markup, Word, join_words
from memstory.results.outcomes import OUTCOMES, CaseResult, Outcome, TrialResult
from memstory.results.redaction import redaction_notice
from memstory.results.runs import NamedRun, Run
from memstory.scoring.metrics import mean

RECALL: Final = "recall@5"
"""The score that stands for retrieval."""

JUDGED: Final[Sequence[Outcome]] = ("passed", "failed")
UNREADABLE: Final = "(could not be read)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One target of one run; `cases` by story. A story that could not be read is in every column of its run."""

    title: str
    run: NamedRun
    target: str
    cases: Mapping[str, CaseResult]

    @property
    def counts(self) -> Mapping[Outcome, int]:
        """How many of its cases ended in each way."""
        return outcome_counts(self.cases.values())

    @property
    def recalls(self) -> Sequence[float]:
        """The recall@5 of each judged story that has it."""
        judged = [case.metrics for case in self.cases.values() if case.outcome in JUDGED]
        return [metrics[RECALL] for metrics in judged if RECALL in metrics]

    @property
    def recall(self) -> float | None:
        """The mean recall@5 over the judged stories that have it; None without any."""
        return mean(self.recalls) if self.recalls else None

    @property
    def recall_stories(self) -> int:
        """How many stories `recall` is the mean of."""
        return len(self.recalls)

    @property
    def about(self) -> Mapping[str, Sequence[str]]:
        """What the target said about itself."""
        return self.run.run.fingerprint.targets.get(self.target, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTotals:
    """How the cases of one target ended, of a run whose cases are not all at hand."""

    title: str
    counts: Mapping[Outcome, int]
    recall: float | None
    recall_stories: int


def outcome_counts(cases: Iterable[CaseResult]) -> Mapping[Outcome, int]:
    """Return how many of the cases ended in each way."""
    found = Counter(case.outcome for case in cases)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def columns_of(runs: Sequence[NamedRun]) -> list[Column]:
    """Return the columns in order of runs and targets; one is named by its run too where another has its target."""
    counts = Counter(target for named in runs for target in targets_of(named.run))
    return [
        Column(
            title=target if counts[target] == 1 else f"{named.name}: {target}",
            run=named,
            target=target,
            cases={case.name: case for case in named.run.cases if case.target in (target, "")},
        )
        for named in runs
        for target in targets_of(named.run)
    ]


def columns_of_run(run: Run) -> list[Column]:
    """Return those of one run by itself, each named by its target."""
    return columns_of([NamedRun(name="", run=run)])


def named_column(columns: Sequence[Column], name: str) -> Column:
    """Return the column of that title, or of that target where only one has it.

    Raises:
        SetupError: no column has this name, or several have.
    """
    found = [one for one in columns if one.title == name] or [one for one in columns if one.target == name]
    if len(found) == 1:
        return found[0]
    titles = [one.title for one in columns]
    near = get_close_matches(name, titles, n=1)
    hint = f" Did you mean '{near[0]}'?" if near and not found else ""
    said = "several columns are" if found else "no column is"
    raise SetupError(f"{said} named '{name}'.{hint} Known: {', '.join(titles)}")


def opponent(column: Column, columns: Sequence[Column], against: Column | None = None) -> Column | None:
    """Return what a column is compared with: `against`, else the same target in an earlier run, else the first column.

    None for the first column itself.
    """
    if against is not None:
        return None if against.title == column.title else against
    earlier = columns[: columns.index(column)]
    return next((one for one in earlier if one.target == column.target), earlier[0] if earlier else None)


def trials_of(columns: Sequence[Column]) -> Iterator[tuple[CaseResult, TrialResult]]:
    """Yield every trial of the columns with its case."""
    yield from ((case, trial) for column in columns for case in column.cases.values() for trial in case.trials)


def targets_of(run: Run) -> list[str]:
    """Return every target that was asked, sorted; a story that could not be read was for none of them."""
    return sorted({case.target for case in run.cases if case.target})


def with_outcome(run: Run, outcome: Outcome) -> list[CaseResult]:
    """Return the cases that ended so."""
    return [case for case in run.cases if case.outcome == outcome]


def headline(run: Run) -> str:
    """Return the counts in words; those that are zero are left out, except passed and failed.

    Where cases ran several times, the number of trials is behind them.
    """
    most = max((len(case.trials) for case in run.cases), default=1)
    always = all(len(case.trials) == most for case in run.cases if case.trials)
    trials = [f"{'' if always else 'up to '}{most} trials a case"] if most > 1 else []
    return ", ".join([counts_in_words(run), *trials])


def counts_in_words(run: Run) -> str:
    """Return how many cases ended in each way."""
    return ", ".join(f"{count} {name}" for name, count in run.summary.items() if count or name in JUDGED)


def descriptions(run: Run, name: str) -> dict[str, Sequence[str]]:
    """Return what each target said about `name` (`embedder`, `chat` …), for the targets that said anything."""
    return {target: about[name] for target, about in run.fingerprint.targets.items() if about.get(name)}


def facts_of(run: Run) -> Mapping[str, str]:
    """Return what the run was made with, name -> text, in the order in which they are shown."""
    printed = run.fingerprint
    facts = {
        "Targets": ", ".join(targets_of(run)) or "none",
        "When": printed.started or "not recorded",
        "Time in cases": f"{sum(case.seconds for case in run.cases):.1f} s",
        "Machine": f"{printed.platform}, {printed.processors} processors",
        "Versions": f"memstory {printed.memstory}, Python {printed.python}",
        "Embedder": _description(run, "embedder"),
        "Chat model": _description(run, "chat"),
        "Redacted": redaction_notice(run.redacted),
    }
    if printed.options:
        facts["Options"] = ", ".join(f"{name}={value}" for name, value in printed.options.items())
    return facts


def _description(run: Run, name: str) -> str:
    """Return what the targets named; one that all share is said once."""
    named = {target: ", ".join(values) for target, values in descriptions(run, name).items()}
    if len(set(named.values())) <= 1:
        return next(iter(named.values()), "none was named")
    return "; ".join(f"{target}: {values}" for target, values in named.items())


def shard_name(run: Run) -> str:
    """Return `shard 2 of 5` for a part of a run, nothing for a whole one."""
    return str(run.fingerprint.shard or "")


def stand_ins(run: Run) -> list[str]:
    """Return the chat models that are not language models, by their own word."""
    models = {model for named in descriptions(run, "chat").values() for model in named}
    return sorted(model for model in models if STAND_IN in model.lower())


def stand_in_words(runs: Sequence[Run]) -> Iterator[Sequence[Word]]:
    """Yield that no language model chose anything, where a stand-in did."""
    if models := sorted({model for run in runs for model in stand_ins(run)}):
        said = (
            ". A deterministic stand-in chooses tools and words by fixed rules. Its stories show that the memory and"
            " its tools work, not how well a language model uses them."
        )
        yield [Markup("**Not a language model:** "), *join_words(f"“{model}”" for model in models), Markup(said)]


def step_number(path: Sequence[int]) -> str:
    """Return a step's path as people count.

    >>> step_number([1, 0])
    '2.1'
    """
    return ".".join(str(index + 1) for index in path)
