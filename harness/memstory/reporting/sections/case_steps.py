"""One case in detail: why it did not pass, and the whole of it step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.codec import encode_lean
from memstory.contract.target import ToolCall, Tree
from memstory.reporting.document import (
    Block,
    CaseLink,
    Document,
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
)
from memstory.reporting.sections.columns import UNREADABLE, step_number
from memstory.results.outcomes import AgentStep, CaseResult, Score, StepTime, TrialResult, Verdict
from memstory.results.recording import RetrievalRecord, StepRecord
from memstory.results.runs import by_key, documents_of
from memstory.tasks.perturbation import level_name

DETAIL_LIMIT: Final = 6000
"""Characters of a traceback, or of the arguments or the result of a step."""

LIST_LIMIT: Final = 30
"""Items of one list, such as the hits of a search."""

_MILLI: Final = 1000
_STEP: Final = 4
"""The level of the section of a step."""


def failure_section(case: CaseResult) -> Section:
    """Return what a reader needs to act on a case: its reason, the expectations that failed, what the agent did."""
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
    steps = {tuple(step.path): step for step in trial.times}
    yield from (Items([_verdict(verdict, steps.get(tuple(verdict.step)))]) for verdict in verdicts)
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


def _verdict(verdict: Verdict, of: StepTime | None) -> ListItem:
    path = tuple(verdict.step)
    step = Markup(f", step {step_number(path)}" if path else ", the story as a whole")
    operation = [Markup(" ("), of.op, Markup(")")] if of else []
    sent = [[Markup("sent: "), request] for request in of.requests] if of else []
    compared = {"expected": verdict.expected, "actual": verdict.actual}
    return ListItem(
        [PlaceLink(verdict.where, verdict.where), step, *operation, Markup(": "), verdict.reason],
        [*sent, *([Markup(f"{name}: "), text] for name, text in compared.items() if text is not None)],
        verdict.difference or "",
    )


def _agent_step(step: AgentStep) -> Iterator[ListItem]:
    """Yield what was said, called and answered in one step."""
    number = step_number(step.path)
    calls = [[Markup("called "), *_call(call)] for call in step.turn.tool_calls]
    if step.said is None:
        yield from (ListItem([Markup(f"step {number}, "), *call]) for call in calls)
        return
    answer = [Markup("answered: "), step.turn.answer or "(nothing)"]
    yield ListItem([Markup(f"step {number}, said: "), step.said], [*calls, answer])


def _call(call: ToolCall) -> list[str]:
    args = ", ".join(f"{name}={value!r}" for name, value in call.args.items())
    outcome = [Markup("error: "), call.error] if call.error else [str(call.result)]
    return [call.name, Markup("("), args, Markup(") → "), *outcome]


def case_steps(case: CaseResult, *, with_times: bool = True) -> Document:
    """Return how the trial that stands for `case` went, with a section for each step.

    Without times it is the same for two runs that did the same.
    """
    trial = case.deciding
    ended: list[str] = [f" {round(case.seconds, 3)} s"] if with_times and case.seconds else []
    ended += [f", trial {case.shown + 1} of {len(case.trials)}"] if len(case.trials) > 1 else []
    ended += [f", {case.rate}"] if case.rate else []
    facts: Mapping[str, Tree] = {
        "options": dict(case.options),
        "about": dict(trial.recording.about) if trial else {},
        "warnings": list(case.warnings),
        "redacted": {name: count for name, count in case.redacted.items() if count},
    }
    return [
        Note([Sign(case.outcome), *ended]),
        *([Block(case.reason, DETAIL_LIMIT)] if case.reason else []),
        *(Note(f"{name}: {_in_words(value)}") for name, value in facts.items() if value),
        *(_steps(trial, with_times=with_times) if trial else ()),
        *_scores(case),
        *map(_retrieval_section, case.retrieval),
    ]


def failed_lines(case: CaseResult) -> list[int]:
    """Return the lines of the story's file whose expectations failed in the trial that stands for `case`."""
    failed = [one.where for one in case.deciding.verdicts if not one.passed] if case.deciding else []
    return sorted({int(line) for where in failed if (line := where.rsplit(":", 2)[-2]).isdigit()})


def _steps(trial: TrialResult, *, with_times: bool) -> Iterator[Part]:
    checks = by_key((tuple(verdict.step), verdict) for verdict in trial.verdicts)
    steps = trial.recording.steps or _extracted_steps(trial)
    for step in steps[:LIST_LIMIT]:
        title = f"{step_number(step.path)} {step.op}"
        yield Section(title, [*_step(step, with_times=with_times), *_checks(checks.pop(tuple(step.path), []))], _STEP)
    yield from _rest(len(steps), "steps")
    yield from _checks([one for of_step in checks.values() for one in of_step])
    if failure := trial.recording.failure:
        place = f" in step {step_number(failure.step)}" if failure.step else ""
        detail = [Fold("Details", [Block(failure.detail, DETAIL_LIMIT)])] if failure.detail else []
        yield Section(f"Ended{place}: {failure.kind}", [Block(failure.message, DETAIL_LIMIT), *detail], _STEP)


def _extracted_steps(trial: TrialResult) -> Sequence[StepRecord]:
    """Return what results.json has of the steps: times, and what an agent did where a trial did not pass."""
    turns = {tuple(one.path): one for one in trial.agent}
    steps = []
    for time in trial.times:
        agent = turns.get(tuple(time.path))
        args = {"text": agent.said} if agent and agent.said is not None else {}
        steps.append(
            StepRecord(path=time.path, op=time.op, args=args, user="", session=None, at="", seconds=time.seconds,
                       result=encode_lean(agent.turn) if agent else None, requests=time.requests)
        )  # fmt: skip
    return steps


def _step(step: StepRecord, *, with_times: bool) -> Iterator[Part]:
    if with_times:
        about = [step.user, step.session, step.at, f"{_MILLI * step.seconds:.1f} ms", str(step.model or "")]
        yield Note(" · ".join(filter(None, about)))
    if step.args:
        yield _block(step.args)
    yield from (_block(f"sent: {request}") for request in step.requests)
    if step.error:
        yield _block(f"refused: {step.error}")
    else:
        yield from _result(step.result)


def _result(result: Tree) -> Iterator[Part]:
    match result:
        case None | "" | {}:
            return
        case [*hits] if all(isinstance(one, dict) and "text" in one for one in hits):
            rows = [[str(place), *_cells(hit, "score", "text", "key")] for place, hit in enumerate(hits, 1)]
            yield from _table(["#", "score", "text", "key or id"], rows)
        case {"answer": answer}:
            yield from map(_tool_call, result.get("tool_calls") or ())
            yield _block(f"answered: {answer or '(nothing)'}")
        case {"items": [{"outcome": _}, *_] as items}:
            rows = [_cells(item, "outcome", "text", "key", "reason") for item in items]
            yield from _table(["outcome", "text", "key or id", "reason"], rows)
        case _:
            yield _tool_call(result)


def _cells(thing: Mapping[str, Tree], *names: str) -> list[str]:
    """Return fields of a hit, or of an item of a receipt; what has no key has an id."""
    shown = {**thing, "key": thing.get("key") or thing.get("id")}
    texts = (shown.get(name) for name in names)
    return [f"{text:.3f}" if isinstance(text, float) else "" if text is None else str(text) for text in texts]


def _tool_call(call: Tree) -> Block:
    """Return a call of a tool with what it returned; any other value as it is."""
    if not isinstance(call, dict) or not call.keys() >= {"name", "args"}:
        return _block(call)
    outcome = f"error: {call['error']}" if call.get("error") else _json(call.get("result"))
    return _block(f"{call['name']}({_json(call['args'])})\n→ {outcome}")


def _block(value: Tree) -> Block:
    """Return a value line by line: what is only texts as texts, anything else as JSON."""
    match value:
        case str(text):
            pass
        case {"text": str(text)} if len(value) == 1:
            pass
        case {"items": [*items]} if len(value) == 1 and all(
            isinstance(one, dict) and [*one] == ["text"] for one in items
        ):
            text = "\n".join(one["text"] for one in items)
        case _:
            text = _json(value, indent=1)
    return Block(text, DETAIL_LIMIT)


def _json(value: Tree, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Part]:
    yield Table(header, rows[:LIST_LIMIT])
    yield from _rest(len(rows), "rows")


def _rest(count: int, noun: str) -> Iterator[Note]:
    """Yield how many are not shown of a long list."""
    if count > LIST_LIMIT:
        yield Note(f"… and {count - LIST_LIMIT} more {noun}")


def _checks(verdicts: Sequence[Verdict]) -> Iterator[Part]:
    """Yield those that failed with all that is known, then those that held."""
    if failed := [_verdict(one, None) for one in verdicts if not one.passed]:
        yield Items(failed)
    held = [Note([Sign("passed"), " ", one.reason]) for one in verdicts if one.passed]
    yield from held[:LIST_LIMIT]
    yield from _rest(len(held), "that held")


def _scores(case: CaseResult) -> Iterator[Section]:
    rows = [
        [f"{one.metric} {level_name(one.level)}".strip(), f"{one.value:.3f}", _interval(one), str(one.questions)]
        for one in case.scores
        if one.category is None
    ]
    if rows:
        yield Section("Scores", [*_table(["metric", "value", "95% interval", "n"], rows)], _STEP)


def _interval(score: Score) -> str:
    return f"{score.low:.2f} to {score.high:.2f}" if score.low is not None and score.high is not None else ""


def _retrieval_section(record: RetrievalRecord) -> Section:
    """Return a retrieval task: its counts, and the questions that did not find all that they should."""
    judged = [asked for asked in record.questions if asked.judged]
    missed = [asked for asked in judged if not asked.is_answered]
    found = f"{len(judged) - len(missed)} of {len(judged)} questions found all they should"
    rows = [[asked.id, asked.category or "", ", ".join(asked.relevant), ", ".join(asked.retrieved)] for asked in missed]
    title = f"{record.name} {level_name(record.level)}: {found}, {documents_of(record)}, k = {record.k}"
    return Section(title, [*_table(["question", "category", "wanted", "got"], rows)] if rows else [], _STEP)


def _in_words(value: Tree) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {_in_words(inner)}" for name, inner in value.items())
        case list() | tuple():
            return "; ".join(map(_in_words, value))
        case _:
            return str(value)
