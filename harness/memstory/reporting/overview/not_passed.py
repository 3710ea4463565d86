"""The part of report.md on cases that did not pass: what was expected, what happened, and why others could not run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.target import ToolCall
from memstory.reporting import views
from memstory.reporting.comparing.columns import columns_of
from memstory.reporting.escaping import fenced, inline, table
from memstory.reporting.overview.causes import causes, short_reason
from memstory.reporting.overview.links import Links
from memstory.results.outcomes import WORST_FIRST, AgentStep, CaseResult, Outcome, TrialResult, Verdict
from memstory.results.runs import NamedRun, Run

TITLES: Final[Mapping[Outcome, str]] = {"failed": "Failures", "error": "Errors", "invalid": "Invalid stories"}
DETAIL_LIMIT: Final = 6000


def went_wrong(run: Run, links: Links) -> str:
    """Return a section for each outcome that somebody has to act on; empty if there is none."""
    sections = []
    first = {cause.cases[0].id for cause in causes(columns_of([NamedRun(name="", run=run)]))}
    for outcome, title in sorted(TITLES.items(), key=lambda one: WORST_FIRST.index(one[0])):
        found = [case for case in views.with_outcome(run, outcome) if not case.is_lost]
        if found:
            parts = [_case(case, links) for case in found if case.id in first]
            sections.append("\n\n".join([f"## {title}", *parts, *_others(found, first)]))
    if without := _by_reason(case for case in run.cases if case.is_lost):
        sections.append(f"## Without a result\n\n{without}")
    return "\n\n".join(sections)


def _others(found: Sequence[CaseResult], first: Collection[str]) -> Iterator[str]:
    """Yield a note where the cases that are shown stand for others."""
    more = sum(case.id not in first for case in found)
    if more:
        yield f"{more} more failed for one of these causes; report.html and `memstory show` have them."


def could_not_run(run: Run) -> str:
    """Return the unsupported cases, grouped by their reason."""
    return _by_reason(views.with_outcome(run, "unsupported"))


def _by_reason(cases: Iterable[CaseResult]) -> str:
    found: dict[str, list[str]] = {}
    for case in cases:
        reason = short_reason(case)
        found.setdefault(reason, []).append(case.id)
    rows = [[inline(reason), str(len(names)), inline(", ".join(names))] for reason, names in found.items()]
    return table(["Why", "Cases", "Which"], rows, right=[1]) if rows else ""


def _case(case: CaseResult, links: Links) -> str:
    title = f"### {views.SYMBOLS[case.outcome]} {links.to_case(case)}: {inline(case.title or views.UNREADABLE)}"
    trial = case.deciding
    verdicts = [verdict for verdict in trial.verdicts if not verdict.passed] if trial else []
    parts = [title, *_reason(case, verdicts, links)]
    if rate := case.rate:
        parts.append(
            f"Passed {rate.passed} of {rate.trials} judged trials"
            f" (95% interval {rate.low:.2f} to {rate.high:.2f}); shown is trial {case.shown + 1}."
        )
    return "\n\n".join([*parts, *(_of_trial(trial, verdicts, links) if trial else ())])


def _of_trial(trial: TrialResult, verdicts: Sequence[Verdict], links: Links) -> Iterator[str]:
    operations = {tuple(step.path): step.op for step in trial.times}
    yield from (_verdict(verdict, operations, links) for verdict in verdicts)
    if happened := "\n".join(line for step in trial.agent for line in _happened(step)):
        yield f"What the agent did:\n\n{happened}"
    failure = trial.recording.failure
    if failure and verdicts:
        step = f" in step {views.step_number(failure.step)}" if failure.step else ""
        yield f"Then it ended{step}: {failure.kind}: {inline(failure.message)}"
    if failure and failure.detail:
        block = fenced(failure.detail, DETAIL_LIMIT)
        yield f"<details><summary>Details</summary>\n\n{block}\n\n</details>"


def _reason(case: CaseResult, verdicts: Sequence[Verdict], links: Links) -> Iterator[str]:
    """Yield place and reason, unless the verdicts that follow say the same."""
    where, reason = case.where, case.reason or "no reason was given"
    if any(verdict.reason and verdict.reason in reason for verdict in verdicts):
        return
    # A reason that names a place in the story's file has the better place.
    has_place = reason.startswith(f"{where.split(':')[0]}:")
    yield inline(reason) if has_place else f"{links.to_place(where)} — {inline(reason)}"


def _verdict(verdict: Verdict, operations: Mapping[tuple[int, ...], str], links: Links) -> str:
    path = tuple(verdict.step)
    step = f"step {views.step_number(path)}" if path else "the story as a whole"
    operation = f" ({inline(operations[path])})" if path in operations else ""
    lines = [f"- {links.to_place(verdict.where)}, {step}{operation}: {inline(verdict.reason)}"]
    compared = {"expected": verdict.expected, "actual": verdict.actual}
    lines += [f"  - {name}: {inline(text)}" for name, text in compared.items() if text is not None]
    if verdict.difference:
        lines.append("\n" + _indented(fenced(verdict.difference)))
    return "\n".join(lines)


def _happened(step: AgentStep) -> Iterator[str]:
    """Yield what was said, called and answered in one step."""
    number = views.step_number(step.path)
    if step.said is None:
        yield from (f"- step {number}, called {_call(call)}" for call in step.turn.tool_calls)
        return
    yield f"- step {number}, said: {inline(step.said)}"
    yield from (f"  - called {_call(call)}" for call in step.turn.tool_calls)
    yield f"  - answered: {inline(step.turn.answer or '(nothing)')}"


def _call(call: ToolCall) -> str:
    args = ", ".join(f"{name}={value!r}" for name, value in call.args.items())
    outcome = f"error: {inline(call.error)}" if call.error else inline(call.result)
    return f"{inline(call.name)}({inline(args)}) → {outcome}"


def _indented(block: str) -> str:
    return "\n".join(f"  {line}" for line in block.split("\n"))
