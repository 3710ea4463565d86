"""The cases of a run one by one: what went wrong, what could not run and why, the matrix, and what they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from memstory.contract.target import ToolCall
from memstory.language.capabilities import LACKS
from memstory.reporting.document import (
    DASH,
    SIGNS,
    Block,
    CaseLink,
    Fold,
    Item,
    Items,
    Markup,
    Note,
    Part,
    PlaceLink,
    Section,
    Sign,
    Table,
    Words,
    sign_of,
    where_any,
)
from memstory.reporting.sections.columns import UNREADABLE, Column, step_number, targets_of, with_outcome
from memstory.reporting.sections.outcomes import causes, short_reason
from memstory.results.outcomes import WORST_FIRST, AgentStep, CaseResult, Outcome, TrialResult, Verdict
from memstory.results.runs import Run, counted, natural

TITLES: Final[Mapping[Outcome, str]] = {"failed": "Failures", "error": "Errors", "invalid": "Invalid stories"}
DETAIL_LIMIT: Final = 6000
SLOWEST: Final = 10
FOLDED: Final = 12
"""A matrix of more lines than this is folded."""

_UNLOCKED: Final = 5
ADVICE: Final = Markup(
    "Declare a capability only if the memory has it: `memstory.conformance.TargetContract` tests what is declared, and "
    "the stories that it unlocks judge the rest."
)
LEGEND: Final = Note(Markup(", ".join(f"{sign} {outcome}" for outcome, sign in SIGNS.items()) + "."))
"""What the signs of a matrix mean."""

_REPETITION: Final = Markup("""\
*Flaky* is a case of which some trials passed and some did not, whatever the story made of it; nothing is tried again
silently. The interval is Wilson's, of 95%. pass@2 is the chance that one of two trials passes, pass^2 that both do,
and pass^n that all of as many trials as were run do.""")


def went_wrong(run: Run, columns: Sequence[Column]) -> list[Section]:
    """Return a section for each outcome that somebody has to act on; a case stands for all of the same cause."""
    sections = []
    first = {cause.cases[0].id for cause in causes(columns)}
    for outcome, title in sorted(TITLES.items(), key=lambda one: WORST_FIRST.index(one[0])):
        found = [case for case in with_outcome(run, outcome) if not case.is_lost]
        parts: list[Part] = [_case(case) for case in found if case.id in first]
        if more := sum(case.id not in first for case in found):
            parts.append(
                Note(Markup(f"{more} more failed for one of these causes; report.html and `memstory show` have them."))
            )
        sections.append(Section(title, parts))
    return [*sections, Section("Without a result", by_reason(case for case in run.cases if case.is_lost))]


def by_reason(cases: Iterable[CaseResult]) -> Sequence[Part]:
    """Return the cases, grouped by why they did not pass."""
    found: dict[str, list[str]] = {}
    for case in cases:
        found.setdefault(short_reason(case), []).append(case.id)
    rows = [[reason, str(len(names)), ", ".join(names)] for reason, names in found.items()]
    return where_any(Table(["Why", "Cases", "Which"], rows, numbers=slice(1, 2)))


def _case(case: CaseResult) -> Section:
    trial = case.deciding
    verdicts = [verdict for verdict in trial.verdicts if not verdict.passed] if trial else []
    parts: list[Part] = list(_reason(case, verdicts))
    if rate := case.rate:
        passed = (
            f"Passed {rate.passed} of {rate.trials} judged trials (95% interval {rate.low:.2f} to {rate.high:.2f});"
        )
        parts.append(Note(Markup(f"{passed} shown is trial {case.shown + 1}.")))
    if trial:
        parts += _trial(trial, verdicts)
    link = CaseLink(case.id, case.name, case.target)
    title: Words = [Sign(case.outcome), Markup(" "), link, Markup(": "), case.title or UNREADABLE]
    return Section(title, parts, level=3)


def _trial(trial: TrialResult, verdicts: Sequence[Verdict]) -> Iterator[Part]:
    operations = {tuple(step.path): step.op for step in trial.times}
    yield from (Items([_verdict(verdict, operations)]) for verdict in verdicts)
    if happened := [item for step in trial.agent for item in _agent_step(step)]:
        yield Note(Markup("What the agent did:"))
        yield Items(happened)
    failure = trial.recording.failure
    if failure and verdicts:
        step = f" in step {step_number(failure.step)}" if failure.step else ""
        yield Note([Markup(f"Then it ended{step}: {failure.kind}: "), failure.message])
    if failure and failure.detail:
        yield Fold("Details", [Block(failure.detail, DETAIL_LIMIT)])


def _reason(case: CaseResult, verdicts: Sequence[Verdict]) -> Iterator[Note]:
    """Yield place and reason, unless the verdicts that follow say the same."""
    where, reason = case.where, case.reason or "no reason was given"
    if any(verdict.reason and verdict.reason in reason for verdict in verdicts):
        return
    # A reason that names a place in the story's file has the better place.
    has_place = reason.startswith(f"{where.split(':')[0]}:")
    yield Note(reason if has_place else [PlaceLink(where, where), Markup(" — "), reason])


def _verdict(verdict: Verdict, operations: Mapping[tuple[int, ...], str]) -> Item:
    path = tuple(verdict.step)
    step = Markup(f", step {step_number(path)}" if path else ", the story as a whole")
    operation = [Markup(" ("), operations[path], Markup(")")] if path in operations else []
    compared = {"expected": verdict.expected, "actual": verdict.actual}
    return Item(
        [PlaceLink(verdict.where, verdict.where), step, *operation, Markup(": "), verdict.reason],
        [[Markup(f"{name}: "), text] for name, text in compared.items() if text is not None],
        verdict.difference or "",
    )


def _agent_step(step: AgentStep) -> Iterator[Item]:
    """Yield what was said, called and answered in one step."""
    number = step_number(step.path)
    calls = [[Markup("called "), *_call(call)] for call in step.turn.tool_calls]
    if step.said is None:
        yield from (Item([Markup(f"step {number}, "), *call]) for call in calls)
        return
    answer = [Markup("answered: "), step.turn.answer or "(nothing)"]
    yield Item([Markup(f"step {number}, said: "), step.said], [*calls, answer])


def _call(call: ToolCall) -> list[str]:
    args = ", ".join(f"{name}={value!r}" for name, value in call.args.items())
    outcome = [Markup("error: "), call.error] if call.error else [str(call.result)]
    return [call.name, Markup("("), args, Markup(") → "), *outcome]


def repetition(run: Run) -> Sequence[Part]:
    """Return the cases with several trials, the flaky ones first: how often they passed, how reliable that is."""
    rated = [(case, case.rate) for case in run.cases if case.rate is not None]
    rows: list[Sequence[Words]] = [
        [
            case.id,
            [Sign(case.outcome), Markup(f" {case.outcome}" + (", **flaky**" if rate.flaky else ""))],
            f"{rate.passed} of {rate.trials}",
            f"{rate.passed / rate.trials:.2f}",
            f"{rate.low:.2f} to {rate.high:.2f}",
            _of_two(rate.pass_at),
            _of_two(rate.pass_hat),
            f"{rate.pass_hat[-1]:.2f}",
        ]
        for case, rate in sorted(rated, key=lambda one: not one[1].flaky)
    ]
    header = ["Case", "Outcome", "Passed", "Rate", "95% interval", Markup("pass@2"), "pass^2", "pass^n"]
    return where_any(Table(header, rows, numbers=slice(2, None)), Note(_REPETITION))


def _of_two(values: Sequence[float]) -> str:
    return f"{values[1]:.2f}" if len(values) > 1 else DASH


def unlocks(run: Run) -> Mapping[str, Sequence[tuple[str, int]]]:
    """Return for each target the capabilities that alone keep cases from running, with how many, the most first."""
    found: dict[str, Counter[str]] = {}
    for case in with_outcome(run, "unsupported"):
        lacking = _lacking(case)
        # An option is of one library: others have nothing to declare.
        if len(lacking) == 1 and not lacking[0].startswith("option."):
            found.setdefault(case.target, Counter()).update(lacking)
    return {
        target: sorted(counts.items(), key=lambda one: (-one[1], one[0])) for target, counts in sorted(found.items())
    }


def unlocks_in_words(run: Run) -> str:
    """Return one sentence about a run of one target; empty for several, or where no single capability unlocks a case.

    A run of several is a comparison, whose reader cannot change its targets.
    """
    found = unlocks(run)
    if len(targets_of(run)) != 1 or not found:
        return ""
    ((target, counts),) = found.items()
    first, *others = [f"{n} more with '{name}'" for name, n in counts[:_UNLOCKED]]
    return f"What {target} would run if it could and said so: {', '.join([first, *others])}."


def unlocks_parts(run: Run) -> Sequence[Part]:
    """Return the same of all targets."""
    rows = [
        [target, Markup(", ".join(f"{n} with `{name}`" for name, n in counts[:_UNLOCKED]))]
        for target, counts in unlocks(run).items()
    ]
    return where_any(Table(["Target", "One more capability would run"], rows), Note(ADVICE))


def _lacking(case: CaseResult) -> Sequence[str]:
    _, marker, names = (case.reason or "").rpartition(LACKS)
    lacking = names.split(", ") if marker else []
    return lacking if {*lacking} <= {*case.needs} else []


def warnings(run: Run) -> Sequence[Part]:
    """Return each warning with the cases that gave it."""
    cases: dict[str, list[str]] = {}
    for case in run.cases:
        for warning in case.warnings:
            cases.setdefault(warning, []).append(case.id)
    items = [Item([text, Markup(" ("), ", ".join(names), Markup(")")]) for text, names in cases.items()]
    return [Items(items)] if items else []


def slowest(run: Run) -> Sequence[Part]:
    """Return the cases that took longest."""
    ranked = sorted(run.cases, key=lambda case: -case.seconds)[:SLOWEST]
    rows = [[case.id, f"{case.seconds:.2f}"] for case in ranked if case.seconds > 0]
    return where_any(Table(["Case", "Seconds"], rows, numbers=slice(1, None)))


def requirements(run: Run) -> Sequence[Part]:
    """Return which requirements passing stories show, and which are claimed by stories that did not pass."""
    shown: dict[str, list[str]] = {}
    claimed: dict[str, list[str]] = {}
    for case in run.cases:
        for requirement in case.covers:
            claimed.setdefault(requirement, [])
            (shown if case.outcome == "passed" else claimed).setdefault(requirement, []).append(case.id)
    if not claimed:
        return ()
    rows = [
        [name, ", ".join(shown.get(name, [])) or DASH, ", ".join(claimed[name]) or DASH]
        for name in sorted(claimed, key=natural)
    ]
    table = Table(["Requirement", "Shown by", "Not passed"], rows)
    words = f"{len(shown)} of the {len(claimed)} requirements that these stories cover are shown by a passing case."
    return Note(Markup(words)), Fold("Each requirement", [table])


def matrix(run: Run) -> dict[tuple[str, str], dict[str, Outcome]]:
    """Return `(story, title) -> target -> outcome`, in the run's order; an absent pair was not asked for.

    A story that could not be read has its outcome under every target.
    """
    rows: dict[tuple[str, str], dict[str, Outcome]] = {}
    for case in run.cases:
        asked = [case.target] if case.target else targets_of(run)
        row = rows.setdefault((case.name, case.title or f"{UNREADABLE} {case.where}"), {})
        row.update(dict.fromkeys(asked, case.outcome))
    return rows


def matrix_parts(run: Run) -> Sequence[Part]:
    """Return the matrix, folded: stories that several targets were asked, then those of one target only."""
    if not run.cases:
        return [Note(Markup("No case ended."))]
    targets = targets_of(run)
    rows = list(matrix(run).items())
    cases = {case.name: case for case in run.cases}
    shared = [one for one in rows if len(one[1]) > 1 or len(targets) <= 1]
    parts: list[Part] = [LEGEND, *_matrix(shared, targets, cases)]
    for target in targets:
        own = [one for one in rows if list(one[1]) == [target] and len(targets) > 1]
        if own:
            title = [target, Markup(f" only: {counted(len(own), 'story')}")]
            parts.append(Fold(title, _matrix(own, [target], cases)))
    return parts


def _matrix(
    rows: Sequence[tuple[tuple[str, str], Mapping[str, Outcome]]], targets: Sequence[str],
    cases: Mapping[str, CaseResult],
) -> Sequence[Part]:  # fmt: skip
    """Return a table; the rows of one story that ended alike are one line."""
    lines: list[Sequence[Words]] = []
    for _, group in groupby(rows, key=lambda one: (one[0][0].partition("[")[0], one[0][1], one[1])):
        alike = list(group)
        (story, title), outcomes = alike[0]
        name: list[str | PlaceLink] = [PlaceLink(story or cases[story].where, cases[story].where)]
        if len(alike) > 1:
            name.append(Markup(f" and {counted(len(alike) - 1, 'more row')}"))
        if slug := cases[story].slug:
            name += [Markup(" "), slug]
        lines.append([name, title, *(sign_of(outcomes.get(target)) for target in targets)])
    table = Table(["Story", "Title", *targets], lines)
    return [Fold(counted(len(rows), "story"), [table])] if len(lines) > FOLDED else where_any(table)
