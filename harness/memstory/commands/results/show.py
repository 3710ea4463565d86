"""`memstory show`: a recorded case, step by step."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from memstory.commands.command import OK, Command, add_json
from memstory.commands.output import in_colour, say, say_aside, say_json
from memstory.commands.results.results_files import has_recordings, recorded_run_at, run_at
from memstory.contract.codec import Misfit, decode, encode
from memstory.contract.errors import SetupError
from memstory.contract.target import Hit, Receipt, ReceiptItem, ToolCall, Tree, Turn
from memstory.language.registry import suggestion, unknown_name_message
from memstory.reporting.document import one_line, visible
from memstory.reporting.sections.columns import step_number
from memstory.results.folder.recordings_file import RECORDINGS_NAME
from memstory.results.outcomes import CaseResult, Verdict
from memstory.results.recording import RetrievalRecord, StepRecord
from memstory.results.redaction import redaction_notice
from memstory.results.runs import Run, documents_of, quantity, questions_of

_COLOURS: Final = {
    "red": re.compile(r" {5}FAILED |ended(?: in step [\d.]+)?: |\S+  (?:failed|error|invalid) in "),
    "green": re.compile(r" {5}ok |\S+  passed in "),
}
_FEW: Final = 20
"""So many names are read; of more, only a near one helps."""

_SHORT: Final = 160
"""Characters of a value that is not shown in full."""

_MISSED: Final = 10
_INDENT: Final = "     "
_RESULTS: Final[Mapping[str, object]] = {
    "say": Turn, "tool": ToolCall, "add": Receipt, "update": Receipt, "get": Hit | None, "search": Sequence[Hit],
    "list": Sequence[Hit],
}  # fmt: skip
"""What operations return."""


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of a run, or results.json in it")
    parser.add_argument(
        "case", metavar="CASE", help="the id of a case, S5[topics], or the id or slug of a story that ran on one target"
    )
    parser.add_argument("--trial", type=int, metavar="N", help="which trial, from 1 (default: the one that decided)")
    parser.add_argument("--full", action="store_true", help="do not shorten long values")
    add_json(parser)


def _run(chosen: argparse.Namespace) -> int:
    is_recorded = has_recordings(chosen.results)
    case = _case(recorded_run_at(chosen.results) if is_recorded else run_at(chosen.results), chosen.case)
    trial = _trial(case, chosen.trial)
    for line in _incomplete(case, is_recorded=is_recorded):
        say_aside(f"memstory show: {line}")
    if chosen.json:
        say_json(encode(case))
        return OK
    for line in timeline(case, trial, limit=sys.maxsize if chosen.full else _SHORT):
        say(in_colour(line, _colour(line)))
    return OK


def _colour(line: str) -> str:
    """Return how a line of the timeline is shown; what a memory said never begins a line."""
    return next((colour for colour, begin in _COLOURS.items() if begin.match(line)), "")


def _incomplete(case: CaseResult, *, is_recorded: bool) -> Iterator[str]:
    """Yield what of the case is not there to be shown."""
    if not is_recorded and case.trials:
        yield f"there is no {RECORDINGS_NAME} beside these results, so the steps are not shown"
    if any(case.redacted.values()):
        yield f"{redaction_notice(case.redacted)} were redacted before anything was written"


def _case(run: Run, wanted: str) -> CaseResult:
    by_id = {case.id: case for case in run.cases}
    if wanted in by_id:
        return by_id[wanted]
    of_story = [case for case in run.cases if wanted in {case.story, case.slug}]
    if len(of_story) == 1:
        return of_story[0]
    if of_story:
        raise SetupError(f"the story {wanted} has several cases; name one: {', '.join(case.id for case in of_story)}")
    if len(by_id) <= _FEW:
        raise SetupError(unknown_name_message(wanted, "case", by_id))
    near = suggestion(wanted, [*by_id, *dict.fromkeys(case.story for case in run.cases)])
    raise SetupError(f"unknown case '{wanted}'.{near} The run has {len(by_id)} cases; its report.md names them.")


def _trial(case: CaseResult, wanted: int | None) -> int:
    if wanted is None:
        return case.shown
    count = len(case.trials)
    if not 1 <= wanted <= count:
        raise SetupError(f"{case.id} has no trial {wanted}; it ran {quantity(count, 'time')}")
    return wanted - 1


def timeline(case: CaseResult, trial: int, *, limit: int = _SHORT) -> Iterator[str]:
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
    return visible(one_line(str(text), limit))


COMMAND = Command(
    about=(
        "Show what happened in a case of a run: each step with its arguments and result, the tool calls and "
        "answers, and how each expectation was judged. It reads results.json and recordings.jsonl; no target is needed."
    ),
    examples="""
examples:
  memstory show reports/latest S5                      a story that ran on one target
  memstory show reports/latest 'S5[topics]' --full     one case, nothing shortened
  memstory show reports/latest S5 --trial 2            another trial
  memstory show reports/latest S5 --json | jq .trials[0].recording.steps
""",
    exit_codes=("exit codes: 0 fine, 2 there is no such run, case or trial"),
    options=_options,
    run=_run,
)
