"""What tools answered, as data: a kept value, found memories, nothing, a confirmation, or a failure.

Whatever stands in a result is material to quote. No part of it is ever read as a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memstory_reference.ports import ToolRequest, Tree


class Outcome(StrEnum):
    """What became of a call."""

    KEPT = "kept"
    FOUND = "found"
    NOTHING = "nothing"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A memory that was found: what was said, or a question with the answer it got; `rank` counts from 0."""

    text: str
    answer: str | None = None
    date: str = ""
    id: str | None = None
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A call and what it gave; `value` is what a topic holds, or the words of a failure."""

    request: ToolRequest
    outcome: Outcome
    value: str = ""
    topic: str | None = None
    findings: Sequence[Finding] = ()


_TOPIC = re.compile(r"^\s*\[Memory: (?P<topic>[^\]]+)\]\s*(?P<value>.*)$", re.DOTALL)
_ITEM = re.compile(
    r"^\s*\d+[.)]\s+(?:\((?:relevance|score|similarity)[:=]\s*-?[\d.]+\)\s*)?(?:(?P<date>\d{4}-\d{2}-\d{2}\S*|"
    r"undated)\s+)?(?P<text>.+)$"
)
_EXCHANGE = re.compile(r"^Q:\s*(?P<q>.*?)\s+A:\s*(?P<a>.*)$", re.DOTALL)
_HEADING = re.compile(
    r"^\s*(?:\[Memory recall\b.*\]|(?:found|relevant|matching|retrieved|recalled)\b.*:|memories:|results?:|#+ .*)\s*$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_NOTHING = re.compile(
    r"^\s*(?:no (?:relevant |matching |stored |such )?(?:memor(?:y|ies)|results?|entries|topics?|matches|documents|"
    r"records)\b.*|"
    r"(?:nothing|none|null|not) ?(?:found|stored|known)?\.?|\[\s*\]|\{\s*\}|)\s*$",
    re.IGNORECASE | re.DOTALL,
)
_FAILED = re.compile(
    r"^\s*(?:memory unavailable\b|error\b|failed\b|invalid\b|refused\b|could not\b|cannot\b|unknown\b|timed? ?out\b|"
    r"tool \S+ (?:failed|timed out)|exception\b|"
    r".{0,80}\b(?:is not allowed|is required|not permitted|must be a|is missing|did not answer|timed out|does not "
    r"answer)\b)",
    re.IGNORECASE | re.DOTALL,
)
_TEXT_FIELDS = ("content", "text", "memory", "value", "document", "narrative", "fact", "summary", "body")
_LIST_FIELDS = ("results", "memories", "hits", "items", "documents", "matches", "data", "entries", "facts")
_DATE_FIELDS = ("created_at", "timestamp_utc", "timestamp", "date", "updated_at", "created")


def read_result(request: ToolRequest, text: str, *, reads: bool) -> ToolResult:
    """Read what a tool answered; `reads` says that the call looked something up.

    >>> ask = ToolRequest(name="recall_topic", arguments={"topic": "user.name"})
    >>> read_result(ask, "[Memory: user.name] Ana", reads=True).value
    'Ana'
    """
    kept = _TOPIC.match(text)
    if kept and reads:
        return ToolResult(
            request=request, outcome=Outcome.KEPT, value=kept.group("value").strip(), topic=kept.group("topic")
        )
    if _FAILED.match(text):
        return ToolResult(request=request, outcome=Outcome.FAILED, value=text.strip())
    if not reads:
        return ToolResult(request=request, outcome=_done(text), value=text.strip())
    if _NOTHING.match(text):
        return ToolResult(request=request, outcome=Outcome.NOTHING)
    findings = _from_json(text)
    if findings is None:
        findings = list(_from_lines(text))
    outcome = Outcome.FOUND if findings else Outcome.NOTHING
    return ToolResult(request=request, outcome=outcome, findings=tuple(findings))


def _done(text: str) -> Outcome:
    tree = _json(text)
    refused = isinstance(tree, Mapping) and (
        tree.get("success") is False or tree.get("ok") is False or bool(tree.get("error"))
    )
    return Outcome.FAILED if refused else Outcome.DONE


def _from_lines(text: str) -> Iterator[Finding]:
    rank = 0
    for line in text.splitlines():
        if not line.strip() or _HEADING.match(line):
            continue
        item = _ITEM.match(line)
        said = item.group("text") if item else _BULLET.sub("", line).strip()
        day = (item.group("date") or "") if item else ""
        yield _finding(said, date="" if day == "undated" else day, rank=rank)
        rank += 1


def _finding(said: str, *, date: str = "", memory_id: str | None = None, rank: int = 0) -> Finding:
    exchange = _EXCHANGE.match(said)
    if exchange:
        return Finding(text=exchange.group("q"), answer=exchange.group("a"), date=date, id=memory_id, rank=rank)
    return Finding(text=said, date=date, id=memory_id, rank=rank)


def _json(text: str) -> Tree:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _from_json(text: str) -> list[Finding] | None:
    """Return the memories in a JSON answer; None if the text is no JSON list or object."""
    tree = _json(text)
    if isinstance(tree, Mapping):
        tree = next((tree[name] for name in _LIST_FIELDS if isinstance(tree.get(name), list)), [tree])
    if not isinstance(tree, list):
        return None
    found = [_of_entry(entry, rank) for rank, entry in enumerate(tree)]
    return [finding for finding in found if finding is not None]


def _of_entry(entry: Tree, rank: int) -> Finding | None:
    if isinstance(entry, str):
        return _finding(entry, rank=rank)
    if not isinstance(entry, Mapping):
        return None
    inner = entry.get("memory")
    if isinstance(inner, Mapping):
        return _of_entry(inner, rank)
    text = next((entry[name] for name in _TEXT_FIELDS if isinstance(entry.get(name), str)), None)
    if text is None:
        return None
    metadata = entry.get("metadata")
    both = {**(metadata if isinstance(metadata, Mapping) else {}), **entry}
    date = next((str(both[name]) for name in _DATE_FIELDS if both.get(name)), "")
    memory_id = next((str(both[name]) for name in ("id", "memory_id", "content_hash", "hash") if both.get(name)), None)
    return _finding(text, date=date, memory_id=memory_id, rank=rank)
