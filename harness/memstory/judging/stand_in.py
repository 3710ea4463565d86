"""Answers of a stand-in for a language model, and whether the memory had returned what they lack."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from memstory.contract.values import STAND_IN, Tree
from memstory.judging.verdicts import locate
from memstory.language.matchers import Context, judge
from memstory.language.story import Matcher, Story
from memstory.results.outcomes import Verdict
from memstory.results.recording import Recording, StepRecord

UNUSED: Final = "the memory returned it; the stand-in did not use it"

_FIRST: Final = 3
_SAY_WHAT: Final = frozenset({"equals", "contains", "icontains", "contains_all", "contains_any", "regex"})
"""Checks that say what a text has to hold; a hit fits others, such as `length`, without having been asked for."""
_TEXT_KEYS: Final = ("text", "content", "memory", "value", "document", "fact", "note", "page_content", "summary")
_ENTRY: Final = re.compile(r"\s*(?:\d+[.)]|[-*•])\s")


def is_unused(story: Story, recording: Recording, verdict: Verdict) -> bool:
    """Return whether a stand-in's answer lacks what is among the first three hits of a tool call of the step.

    False where one of the other hits holds what the answer must not: a leak or a stale value, however it was used.
    """
    talks = STAND_IN in recording.about.get("chat", "").lower()
    if not talks or verdict.field != "answer" or verdict.check not in _SAY_WHAT:
        return False
    place = locate(story, verdict.step)
    record = next((step for step in reversed(recording.steps) if tuple(step.path) == tuple(verdict.step)), None)
    if place is None or record is None:
        return False
    checks = [one for expected in place.step.expect if expected.field == "answer" for one in expected.matchers]
    wanted = [part for one in checks if str(one.mark) == verdict.where for part in _parts(one)]
    banned = [one for one in checks if one.name == "not"]
    context = Context(names=record.names)

    def holds(text: str, check: Matcher) -> bool:
        return judge("answer", text, check, context).holds

    hits = list(_first_hits(record))
    beside = [text for text in hits if not any(holds(text, one) for one in wanted)]
    return all(any(holds(text, one) for text in hits) for one in wanted) and all(
        holds(text, one) for text in beside for one in banned
    )


def _parts(check: Matcher) -> Sequence[Matcher]:
    """Return the checks of single texts: what an answer has to hold together may come in several hits."""
    if check.name != "contains_all":
        return [check]
    return [replace(check, name="contains", argument=text) for text in check.argument]


def _first_hits(record: StepRecord) -> Iterator[str]:
    calls = record.result.get("tool_calls") if isinstance(record.result, Mapping) else None
    for call in calls or ():
        if call.get("error") is None and call.get("result"):
            yield from _hits(str(call["result"]))[:_FIRST]


def _hits(result: str) -> Sequence[str]:
    """Return the memories that a tool returned: rows of JSON, numbered lines, or all of its lines.

    >>> _hits('{"memories": [{"text": "I live in Faro."}]}'), _hits("[Memory: user.town] Faro")
    (['I live in Faro.'], ['[Memory: user.town] Faro'])
    """
    with suppress(ValueError):
        return [text for row in _rows(json.loads(result)) if (text := _text(row))]
    lines = [line for line in result.splitlines() if line.strip()]
    return [line for line in lines if _ENTRY.match(line)] or lines


def _rows(tree: Tree) -> Sequence[Tree]:
    if isinstance(tree, Mapping):
        return next((inner for inner in tree.values() if isinstance(inner, list)), [tree])
    return tree if isinstance(tree, list) else [tree]


def _text(row: Tree) -> str:
    if not isinstance(row, Mapping):
        return str(row)
    return _text(next((row[key] for key in _TEXT_KEYS if row.get(key)), ""))
