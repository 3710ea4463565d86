"""What a person reads when a case did not pass: a sentence, the story's own lines, what happened, both values."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from memstory.case import Case
from memstory.contract.errors import Mark
from memstory.contract.target import Tree
from memstory.judging.verdicts import locate
from memstory.language.stories import InvalidStory
from memstory.language.story import Step, Story
from memstory.language.words import WORDS
from memstory.reporting.document import shorten, visible
from memstory.results.outcomes import CaseResult, TrialResult, Verdict
from memstory.results.recording import Recording, StepRecord
from memstory.tasks.perturbation import level_name

_LONGEST_VALUE = 400
_MOST_LINES = 20
_MOST_HITS = 10
_MOST_MISSED = 3
_SAME_ERROR = 100
_QUIET_STYLES = frozenset({"auto", "line", "no"})
_INDENT = "    "
_PLACE = re.compile(r"^(\S+:\d+:\d+):? (?:step [\d.]+(?:, pass [\d.]+)? \((\w+)\): )?")
_MORE = re.compile(r"(?: \(and \d+ more\))?(?:; then the (?:target|story) [a-z ]+: .*)?$")
"""What a reason says after the hits: of further failures, and how the case broke off."""
_COUNT = re.compile(r"^hits count (\d+), expected (.+)$")


def failed_text(case: Case, result: CaseResult, path: Path | None) -> str:
    """Return the whole message of a case that gave a wrong answer, or whose story is wrong; no traceback.

    `path` is the story's file, None to quote no line of it.
    """
    found = _PLACE.match(result.reason or "")
    lines = [f"{found[1] if found else result.where}: {sentence(result)}"]
    lines.append(f"story {case.id}: {case.story.title}  ({result.where})")
    for number, trial in enumerate(result.trials):
        if trial.outcome == "passed":
            continue
        if len(result.trials) > 1:
            lines += ["", f"trial {number + 1} of {len(result.trials)}: {trial.outcome}"]
        lines += _trial_lines(case.story, trial, path, said=result.reason or "")
    return visible("\n".join(lines))


def sentence(result: CaseResult) -> str:
    """Return why a case did not pass in one sentence without its place, such as `search: expected 1 hit, got 2`."""
    reason = (result.reason or result.outcome).split("\n", maxsplit=1)[0]
    found = _PLACE.match(reason)
    rest = _reason_line(reason[found.end() :] if found else reason)
    return f"{found[2]}: {rest}" if found and found[2] else rest


def _reason_line(reason: str) -> str:
    """Return a reason without the list of hits, which is on separate lines."""
    head, hits, tail = reason.partition("; the hits are: ")
    count = _COUNT.match(head)
    said = f"expected {count[2]} hit{'' if count[2] == '1' else 's'}, got {count[1]}" if count else head
    more = _MORE.search(tail if hits else "")
    return f"{said}{more[0]}" if more else said


def broken_text(
    case: Case, result: CaseResult, path: Path | None, config: pytest.Config, *, first_case: str | None = None
) -> str:
    """Return the message of a case that ended in an error; the traceback comes with -v or an explicit --tb.

    `first_case` is the case of the same target that has told the same error in full.
    """
    about = f"story {case.id}: {case.story.title}  ({result.where})"
    if first_case is not None:
        return visible(
            f"{result.where}: the same error as {first_case}: {shorten(sentence(result), _SAME_ERROR)}\n{about}"
        )
    lines = [result.reason or result.outcome, about]
    in_full = config.get_verbosity() > 0 or config.getoption("tbstyle") not in _QUIET_STYLES
    for trial in (trial for trial in result.trials if trial.outcome == "error"):
        failure = trial.recording.failure
        if failure is None:
            lines += _trial_lines(case.story, trial, path, said=result.reason or "")
            break
        lines += _step_lines(case.story, failure.step, path)
        if failure.detail and in_full:
            lines += ["", failure.detail.rstrip()]
        elif failure.detail:
            lines += ["", "(the traceback is shown with -v)"]
        break
    return visible("\n".join(lines))


def invalid_text(story: InvalidStory) -> str:
    """Return every error of a document, one a line."""
    return visible("\n".join(str(error) for error in story.errors))


def _trial_lines(story: Story, trial: TrialResult, path: Path | None, *, said: str) -> Iterator[str]:
    failure = trial.recording.failure
    if failure is not None:
        yield from _step_lines(story, failure.step, path)
        # The reason has the lines of the message as one.
        if " ".join(failure.message.split()) not in " ".join(said.split()):
            yield f"{_INDENT}{failure.kind}: {failure.message}"
    wrong = [verdict for verdict in trial.verdicts if not verdict.passed]
    for step in dict.fromkeys(tuple(verdict.step) for verdict in wrong):
        own = [verdict for verdict in wrong if tuple(verdict.step) == step]
        yield from _step_lines(story, step, path, own)
        has_hits = yield from _event_lines(trial.recording, step)
        for verdict in own:
            # What the first line says is not said again.
            is_first = verdict is wrong[0] and verdict.where in said
            yield from _verdict_lines(
                verdict, with_reason=not is_first, with_actual=not has_hits or verdict.field != "hits"
            )
    if any(not verdict.step for verdict in wrong):
        yield from _missed_lines(trial.recording)


def _missed_lines(recording: Recording) -> Iterator[str]:
    """Yield some questions that were not answered, of the first task that has any."""
    for task in recording.retrieval:
        missed = [one for one in task.questions if one.judged and not one.is_answered]
        if missed:
            level = f" at {level_name(task.level)}" if task.level else ""
            yield f"{_INDENT}missed{level} {len(missed)} of {len(task.questions)} questions; `memstory show` has more:"
            yield from (f"{_INDENT * 2}{_short(str(one))}" for one in missed[:_MOST_MISSED])
            return


def _verdict_lines(verdict: Verdict, *, with_reason: bool, with_actual: bool) -> Iterator[str]:
    if with_reason:
        yield f"{_INDENT}{verdict.where}: {_reason_line(verdict.reason)}"
    for label, value in (
        ("expected", verdict.expected),
        ("actual", verdict.actual if with_actual else None),
        ("difference", verdict.difference),
    ):
        if value is not None:
            yield _INDENT + f"{label + ':':<12}" + value.replace("\n", f"\n{_INDENT}{'':<12}")


def _step_lines(story: Story, path: Sequence[int], file: Path | None, wrong: Sequence[Verdict] = ()) -> Iterator[str]:
    """Yield the lines of the story that a step was written on, with their numbers, and a caret below what is wrong."""
    place = locate(story, path)
    if place is None:
        return
    yield ""
    yield f"{place.label} at {place.step.mark}"
    if file is None:
        return
    places = [tuple(map(int, verdict.where.rsplit(":", 2)[1:])) for verdict in wrong if verdict.where.count(":") > 1]
    for number, line in _source(file, place.step.mark, _following(story.steps, path)):
        yield f"{_INDENT}{number:>4} | {line}"
        columns = sorted({column for row, column in places if row == number})
        if columns:
            yield f"{_INDENT}     | " + "".join("^" if place in columns else " " for place in range(1, columns[-1] + 1))


def _following(steps: Sequence[Step], path: Sequence[int]) -> Mark | None:
    """Return where the step behind the one at `path` begins; None if it is the last."""
    step = steps[path[0]]
    # After a `repeat` or `parallel` comes the number of the pass; a `crash` has none.
    inner = path[2:] if WORDS[step.op].is_loop else path[1:]
    after = steps[path[0] + 1].mark if path[0] + 1 < len(steps) else None
    return (_following(step.steps, inner) if inner else None) or after


def _source(file: Path, begin: Mark, following: Mark | None) -> Iterator[tuple[int, str]]:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    end = following.line - 1 if following else len(lines)
    for number, line in enumerate(lines[begin.line - 1 : min(end, begin.line - 1 + _MOST_LINES)], begin.line):
        # Without a next step the story ends where its document does, or at a key of the story itself.
        beyond = number > begin.line and line[:1].strip() and not line.startswith("- ")
        if not following and (line.startswith("---") or beyond):
            return
        yield number, line.rstrip()


def _event_lines(recording: Recording, path: Sequence[int]) -> Generator[str, None, bool]:
    """Yield what was sent and the hits of a step, or its answer and its tool calls; return whether there were hits."""
    record = next((step for step in recording.steps if tuple(step.path) == tuple(path)), None)
    if record is None:
        return False
    yield from (f"{_INDENT}sent: {_short(request)}" for request in record.requests)
    if record.error is not None:
        yield f"{_INDENT}refused: {record.error}"
    if record.op == "say" and isinstance(record.result, dict):
        yield f"{_INDENT}answer: {_short(record.result.get('answer'))}"
        yield from _calls(record)
    hits = record.result if record.op in {"search", "list"} else None
    if not isinstance(hits, list) or not all(isinstance(hit, dict) for hit in hits):
        return False
    yield f"{_INDENT}hits:{'' if hits else ' none'}"
    for number, hit in enumerate(hits[:_MOST_HITS], 1):
        score = f"{hit['score']:.4f}  " if isinstance(hit.get("score"), float) else ""
        yield f"{_INDENT * 2}{number}. {score}{_short(hit.get('text')).replace(chr(10), ' ')}"
    if len(hits) > _MOST_HITS:
        yield f"{_INDENT * 2}and {len(hits) - _MOST_HITS} more"
    return True


def _calls(record: StepRecord) -> Iterator[str]:
    calls = record.result.get("tool_calls") or []
    yield f"{_INDENT}tool calls that happened:{'' if calls else ' none'}"
    for number, call in enumerate(calls, 1):
        outcome = f"error: {_short(call['error'])}" if call.get("error") else _short(call.get("result"))
        yield f"{_INDENT * 2}{number}. {call['name']}({_short(call['args'])}) -> {outcome}"


def _short(value: Tree) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
