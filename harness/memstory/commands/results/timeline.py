"""A case of results.json as lines for a person: step by step what was done, what came back, how it was judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.reporting.escaping import shorten, visible
from memstory.reporting.views import step_number
from memstory.results.document import evidence
from memstory.target import Json

SHORT: Final = 160
_MISSED: Final = 10
_INDENT: Final = "     "


def timeline(case: Json, trial: int, *, limit: int = SHORT) -> Iterator[str]:
    """Yield the lines of one trial; longer values are cut at `limit` characters."""
    seen = evidence(case, case["trials"][trial]) if case["trials"] else case
    yield from _head(case, trial, seen)
    judged: dict[tuple[int, ...], list[Json]] = {}
    for verdict in seen["verdicts"]:
        judged.setdefault(tuple(verdict["step"]), []).append(verdict)
    for step in seen["steps"]:
        yield ""
        yield from _step(step, limit)
        yield from _verdicts(judged.pop(tuple(step["path"]), ()), limit)
    for record in seen["retrieval"]:
        yield ""
        yield from _retrieval(record, limit)
    left = [verdict for verdicts in judged.values() for verdict in verdicts]
    if left:
        yield ""
        yield from _verdicts(left, limit)
    if failure := seen.get("failure"):
        yield ""
        place = f" in step {step_number(failure['step'])}" if failure["step"] else ""
        yield f"ended{place}: {failure['kind']}: {_cut(failure['message'], limit)}"


def _head(case: Json, trial: int, seen: Json) -> Iterator[str]:
    yield visible(f"{case['id']}: {case['title']}")
    yield visible(f"{case['where']}  {case['outcome']} in {case['seconds']:.2f} s")
    if case["reason"]:
        yield visible(case["reason"])
    if case["options"]:
        yield f"options: {_json(case['options'])}"
    about = seen.get("about") or {}
    if about:
        yield visible(", ".join(f"{name}: {value}" for name, value in about.items()))
    if len(case["trials"]) > 1:
        one = case["trials"][trial]
        yield f"trial {trial + 1} of {len(case['trials'])}: {one['outcome']}, seed {one['seed']}"


def _step(step: Json, limit: int) -> Iterator[str]:
    session = f", {step['session']}" if step["session"] else ""
    said = step["args"].get("text", "") if step["op"] == "say" else _json(step["args"]) if step["args"] else ""
    yield f"{step_number(step['path']):<4} {step['op']} {_cut(said, limit)}".rstrip()
    yield visible(f"{_INDENT}by {step['user']}{session}, at {step['at']}, {1000 * step['seconds']:.0f} ms")
    if step["error"] is not None:
        yield f"{_INDENT}refused: {_cut(step['error'], limit)}"
    else:
        yield from (f"{_INDENT}{_cut(line, limit)}" for line in _result(step["op"], step["result"]))


def _result(op: str, result: Json) -> Iterator[str]:
    if result is None:
        yield from ["nothing found"] if op == "get" else []
    elif isinstance(result, Mapping) and "answer" in result:
        yield from (f"called {_call(call)}" for call in result.get("tool_calls") or ())
        yield f"answered: {result['answer'] or '(nothing)'}"
    elif isinstance(result, Mapping) and {"name", "args", "error"} <= result.keys():
        yield f"called {_call(result)}"
    elif isinstance(result, Mapping) and "items" in result:
        yield from (f"{item.get('outcome')}: {_named(item)}" for item in result["items"])
    elif isinstance(result, Mapping) and "text" in result and "score" in result:
        yield f"found {_named(result)}"
    elif isinstance(result, list) and all(isinstance(hit, Mapping) and "score" in hit for hit in result):
        yield f"{len(result)} found" if result else "nothing found"
        yield from (f"{number}. {_named(hit)}" for number, hit in enumerate(result, 1))
    else:
        yield f"returned {result if isinstance(result, str) else _json(result)}"


def _named(thing: Json) -> str:
    score = f" ({thing['score']:.3f})" if isinstance(thing.get("score"), float | int) else ""
    reason = f", because {thing['reason']}" if thing.get("reason") else ""
    return f"{thing.get('key') or thing.get('id') or '(no id)'}{score}: {thing.get('text')}{reason}"


def _call(call: Json) -> str:
    outcome = f"error: {call['error']}" if call.get("error") is not None else _json(call.get("result"))
    return f"{call['name']}({_json(call['args'])}) -> {outcome}"


def _verdicts(verdicts: Sequence[Json], limit: int) -> Iterator[str]:
    for verdict in verdicts:
        word = "held  " if verdict["passed"] else "FAILED"
        yield f"{_INDENT}{word} {verdict['where']}: {_cut(verdict['reason'], limit)}"


def _retrieval(record: Json, limit: int) -> Iterator[str]:
    questions = record["questions"]
    level = f", {_json(record['level'])}" if record["level"] else ""
    yield visible(
        f"{record['name']}{level}: {record['documents']} documents, {len(questions)} questions, "
        f"the first {record['k']} hits of each"
    )
    missed = [one for one in questions if one["judged"] and not set(one["relevant"]) <= set(one["retrieved"])]
    yield f"{_INDENT}{len(questions) - len(missed)} found all that they should"
    for one in missed[:_MISSED]:
        yield _INDENT + _cut(
            f"{one['id']}: wanted {', '.join(one['relevant'])}; got {', '.join(one['retrieved']) or 'nothing'}", limit
        )
    if len(missed) > _MISSED:
        yield f"{_INDENT}and {len(missed) - _MISSED} more did not"


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    return visible(shorten(" ".join(str(text).split()), limit))
