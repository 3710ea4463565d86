"""A case as lines for a person: step by step what was done, what came back, how it was judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.codec import Misfit, decode
from memstory.contract.target import Hit, Receipt, ReceiptItem, ToolCall, Tree, Turn
from memstory.reporting.document import shorten, visible
from memstory.reporting.sections.columns import step_number
from memstory.results.outcomes import CaseResult, Verdict
from memstory.results.recording import RetrievalRecord, StepRecord
from memstory.results.runs import documents_of, questions_of

SHORT: Final = 160
_MISSED: Final = 10
_INDENT: Final = "     "
_RESULTS: Final[Mapping[str, object]] = {
    "say": Turn, "tool": ToolCall, "add": Receipt, "update": Receipt, "get": Hit | None, "search": Sequence[Hit],
    "list": Sequence[Hit],
}  # fmt: skip
"""What operations return."""


def timeline(case: CaseResult, trial: int, *, limit: int = SHORT) -> Iterator[str]:
    """Yield the lines of one trial; longer values are cut at `limit` characters."""
    yield from _head(case, trial)
    if not case.trials:
        return
    judged: dict[tuple[int, ...], list[Verdict]] = {}
    for verdict in case.trials[trial].verdicts:
        judged.setdefault(tuple(verdict.step), []).append(verdict)
    recording = case.trials[trial].recording
    for step in recording.steps:
        yield ""
        yield from _step(step, limit)
        yield from _verdicts(judged.pop(tuple(step.path), ()), limit)
    for record in recording.retrieval:
        yield ""
        yield from _retrieval(record, limit)
    left = [verdict for verdicts in judged.values() for verdict in verdicts]
    if left:
        yield ""
        yield from _verdicts(left, limit)
    if failure := recording.failure:
        yield ""
        place = f" in step {step_number(failure.step)}" if failure.step else ""
        yield f"ended{place}: {failure.kind}: {_cut(failure.message, limit)}"


def _head(case: CaseResult, trial: int) -> Iterator[str]:
    yield visible(f"{case.id}: {case.title}")
    yield visible(f"{case.where}  {case.outcome} in {case.seconds:.2f} s")
    if case.reason:
        yield visible(case.reason)
    if case.options:
        yield f"options: {_json(case.options)}"
    if not case.trials:
        return
    one = case.trials[trial]
    if about := one.recording.about:
        yield visible(", ".join(f"{name}: {value}" for name, value in about.items()))
    if len(case.trials) > 1:
        yield f"trial {trial + 1} of {len(case.trials)}: {one.outcome}, seed {one.recording.seed}"


def _step(step: StepRecord, limit: int) -> Iterator[str]:
    session = f", {step.session}" if step.session else ""
    said = step.args.get("text", "") if step.op == "say" else _json(step.args) if step.args else ""
    yield f"{step_number(step.path):<4} {step.op} {_cut(said, limit)}".rstrip()
    yield visible(f"{_INDENT}by {step.user}{session}, at {step.at}, {1000 * step.seconds:.0f} ms")
    if step.model:
        yield f"{_INDENT}{step.model}"
    yield from (f"{_INDENT}sent: {_cut(request, limit)}" for request in step.requests)
    if step.error is not None:
        yield f"{_INDENT}refused: {_cut(step.error, limit)}"
    else:
        yield from (f"{_INDENT}{_cut(line, limit)}" for line in _result(step.op, step.result))


def _result(op: str, result: Tree) -> Iterator[str]:
    try:
        shown = decode(_RESULTS.get(op, object), result)
    except Misfit:
        shown = result  # what was redacted may have lost its form
    match shown:
        case None:
            yield from ["nothing found"] if op == "get" else []
        case Turn():
            yield from (f"called {_call(call)}" for call in shown.tool_calls)
            yield f"answered: {shown.answer or '(nothing)'}"
        case ToolCall():
            yield f"called {_call(shown)}"
        case Receipt():
            yield from (f"{item.outcome}: {_label(item)}" for item in shown.items)
        case Hit():
            yield f"found {_label(shown)}"
        case tuple():
            yield f"{len(shown)} found" if shown else "nothing found"
            yield from (f"{number}. {_label(hit)}" for number, hit in enumerate(shown, 1))
        case _:
            yield f"returned {shown if isinstance(shown, str) else _json(shown)}"


def _label(thing: Hit | ReceiptItem) -> str:
    score = f" ({thing.score:.3f})" if isinstance(thing, Hit) and thing.score is not None else ""
    reason = f", because {thing.reason}" if isinstance(thing, ReceiptItem) and thing.reason else ""
    return f"{thing.key or thing.id or '(no id)'}{score}: {thing.text}{reason}"


def _call(call: ToolCall) -> str:
    outcome = f"error: {call.error}" if call.error is not None else _json(call.result)
    return f"{call.name}({_json(call.args)}) -> {outcome}"


def _verdicts(verdicts: Sequence[Verdict], limit: int) -> Iterator[str]:
    for verdict in verdicts:
        word = "ok    " if verdict.passed else "FAILED"
        yield f"{_INDENT}{word} {verdict.where}: {_cut(verdict.reason, limit)}"
        if verdict.difference and not verdict.passed:
            yield f"{_INDENT}       difference: {_cut(verdict.difference, limit)}"


def _retrieval(record: RetrievalRecord, limit: int) -> Iterator[str]:
    level = f", {_json(record.level)}" if record.level else ""
    yield visible(
        f"{record.name}{level}: {documents_of(record)}, {questions_of(record)}, the first {record.k} hits of each"
    )
    missed = [one for one in record.questions if one.judged and not set(one.relevant) <= set(one.retrieved)]
    yield f"{_INDENT}{len(record.questions) - len(missed)} found all that they should"
    for one in missed[:_MISSED]:
        yield _INDENT + _cut(str(one), limit)
    if len(missed) > _MISSED:
        yield f"{_INDENT}and {len(missed) - _MISSED} more did not"


def _json(value: Tree) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    return visible(shorten(" ".join(str(text).split()), limit))
