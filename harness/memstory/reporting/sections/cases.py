"""The cases of a run one by one: what went wrong, what could not run and why, the matrix, and what they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from memstory.case import CONTROL
from memstory.contract.target import Capability
from memstory.language.capabilities import IS_SHARED, LACKS, NEEDS_ITS_OWN, is_of_one_memory, remedy
from memstory.reporting.document import (
    DASH,
    SIGNS,
    Fold,
    Items,
    ListItem,
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
from memstory.reporting.sections.case_steps import failure_section
from memstory.reporting.sections.columns import UNREADABLE, Column, targets_of, with_outcome
from memstory.reporting.sections.outcomes import causes, short_reason
from memstory.results.outcomes import WORST_FIRST, CaseResult, Outcome
from memstory.results.runs import Run, by_key, natural, quantity
from memstory.targets.objects.names import PROMISING

TITLES: Final[Mapping[Outcome, str]] = {"failed": "Failures", "error": "Errors", "invalid": "Invalid stories"}
SLOWEST: Final = 10
FOLDED: Final = 12
"""A matrix of more lines than this is folded."""

_SHOWN_STEPS: Final = 5
ADVICE: Final = Markup(
    "Declare a capability only if the memory has it: `memstory.conformance.TargetContract` tests what is declared, and "
    "the stories judge the rest. Each number counts stories that nothing else keeps from running once what stands "
    "before it is there."
)
LEGEND: Final = Note(Markup(", ".join(f"{sign} {outcome}" for outcome, sign in SIGNS.items()) + "."))
"""What the signs of a matrix mean."""

_REPETITION: Final = Markup("""\
*Flaky* is a case of which some trials passed and some did not, whatever the story made of it; nothing is tried again
silently. The interval is Wilson's, of 95%. pass@2 is the chance that one of two trials passes, pass^2 that both do,
and pass^n that all of as many trials as were run do.""")


def failure_sections(run: Run, columns: Sequence[Column]) -> list[Section]:
    """Return a section for each outcome that somebody has to act on; a case stands for all of the same cause."""
    sections = []
    first = {cause.cases[0].id for cause in causes(columns)}
    for outcome, title in sorted(TITLES.items(), key=lambda one: WORST_FIRST.index(one[0])):
        found = [case for case in with_outcome(run, outcome) if not case.is_lost]
        parts: list[Part] = [failure_section(case) for case in found if case.id in first]
        if more := sum(case.id not in first for case in found):
            parts.append(
                Note(Markup(f"{more} more failed for one of these causes; report.html and `memstory show` have them."))
            )
        sections.append(Section(title, parts))
    return [*sections, Section("Without a result", by_reason(case for case in run.cases if case.is_lost))]


def by_reason(cases: Iterable[CaseResult]) -> Sequence[Part]:
    """Return the cases, grouped by why they did not pass."""
    found = by_key((short_reason(case), case.id) for case in cases)
    rows = [[reason, str(len(names)), ", ".join(names)] for reason, names in found.items()]
    return where_any(Table(["Why", "Cases", "Which"], rows, numbers=slice(1, 2)))


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


def untried_stories(run: Run) -> Mapping[str, str]:
    """Return for each target, controls apart, what its unsupported stories need and what to do, in one sentence."""
    cases = by_key(
        (case.target, case)
        for case in with_outcome(run, "unsupported")
        if lacking(case) and not case.target.startswith(CONTROL)
    )
    return {
        target: _advice(own, PROMISING if "object" in run.fingerprint.targets.get(target, {}) else {})
        for target, own in sorted(cases.items())
    }


def untried_parts(run: Run) -> Sequence[Part]:
    """Return the same as a table."""
    rows = [[target, Markup(said)] for target, said in untried_stories(run).items()]
    return where_any(Table(["Target", "Not tried"], rows), Note(ADVICE))


def _advice(cases: Sequence[CaseResult], parameters: Mapping[Capability, str]) -> str:
    needs, places, parts = list[frozenset[str]](), 0, 0
    for case in cases:
        lacks = lacking(case)
        if IS_SHARED in (case.reason or "") and lacks & NEEDS_ITS_OWN:
            places += 1
        elif any(map(is_of_one_memory, lacks)):
            parts += 1
        else:
            needs.append(lacks)
    steps = list(_steps(needs))
    said = [f"{count} more {_remedies(names, parameters)}" for names, count in steps[1:_SHOWN_STEPS]]
    if steps:
        (names, count), rest = steps[0], sum(count for _, count in steps[_SHOWN_STEPS:])
        said = [f"{quantity(count, 'story')} need{'s' * (count == 1)} {_remedies(names, parameters)}", *said]
        said += [f"{rest} more something else"] if rest else []
    said += [f"{places} cannot be tried on a server that other cases use too"] if places else []
    said += [f"{parts} speak of parts that only some memories have"] if parts else []
    return ", ".join(said)


def _steps(needs: Sequence[frozenset[str]]) -> Iterator[tuple[Sequence[str], int]]:
    """Yield what to add next and how many stories run then: the fewest capabilities, of these those of most stories."""
    while needs:
        count = Counter(needs)
        following = min(count, key=lambda one: (len(one), -count[one], sorted(one)))
        left = [rest for one in needs if (rest := one - following)]
        yield sorted(following), len(needs) - len(left)
        needs = left


def _remedies(names: Sequence[str], parameters: Mapping[Capability, str]) -> str:
    todo = ", ".join(dict.fromkeys(remedy(name, parameters) for name in names))
    return f"{' and '.join(f'`{name}`' for name in names)} ({todo})"


def lacking(case: CaseResult) -> frozenset[str]:
    """Return what the target lacks for a case; nothing where it was a step that could not be done."""
    _, marker, names = (case.reason or "").rpartition(LACKS)
    named = frozenset(names.split(", ") if marker else ())
    return named if named <= {*case.needs} else frozenset()


def warnings(run: Run) -> Sequence[Part]:
    """Return each warning with the cases that gave it."""
    cases = by_key((warning, case.id) for case in run.cases for warning in case.warnings)
    items = [ListItem([text, Markup(" ("), ", ".join(names), Markup(")")]) for text, names in cases.items()]
    return [Items(items)] if items else []


def slowest(run: Run) -> Sequence[Part]:
    """Return the cases that took longest."""
    ranked = sorted(run.cases, key=lambda case: -case.seconds)[:SLOWEST]
    rows = [[case.id, f"{case.seconds:.2f}"] for case in ranked if case.seconds > 0]
    return where_any(Table(["Case", "Seconds"], rows, numbers=slice(1, None)))


def requirements(run: Run) -> Sequence[Part]:
    """Return which requirements passing stories show, and which are claimed by stories that did not pass."""
    claims = by_key((requirement, case) for case in run.cases for requirement in case.covers)
    if not claims:
        return ()
    rows = []
    for name, cases in sorted(claims.items(), key=lambda one: natural(one[0])):
        passed = [case.id for case in cases if case.outcome == "passed"]
        others = [case.id for case in cases if case.outcome != "passed"]
        rows.append([name, ", ".join(passed) or DASH, ", ".join(others) or DASH])
    table = Table(["Requirement", "Shown by", "Not passed"], rows)
    shown = sum(row[1] != DASH for row in rows)
    words = f"{shown} of the {len(rows)} requirements that these stories cover are shown by a passing case."
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
            title = [target, Markup(f" only: {quantity(len(own), 'story')}")]
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
            name.append(Markup(f" and {quantity(len(alike) - 1, 'more row')}"))
        if slug := cases[story].slug:
            name += [Markup(" "), slug]
        lines.append([name, title, *(sign_of(outcomes.get(target)) for target in targets)])
    table = Table(["Story", "Title", *targets], lines)
    return [Fold(quantity(len(rows), "story"), [table])] if len(lines) > FOLDED else where_any(table)
