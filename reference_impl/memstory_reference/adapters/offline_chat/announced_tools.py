"""Which announced tool does what, and what tools answered, as data.

Whatever a result says is material to quote. No part of it is ever read as a request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from memstory.contract.models import ToolRequest
from memstory.contract.values import ToolSchema, Tree
from memstory_reference.text.english import lexicon
from memstory_reference.text.english.lexicon import pattern, phrase_pattern

_KINDS = {kind: lexicon.alternatives(f"for_{kind}") for kind in ("key", "text", "query", "id")}
"""What a parameter is for, by its name."""

_SAVE, _READ, _FORGET = lexicon.wordset("save"), lexicon.wordset("read"), lexicon.wordset("forget")
_NEAR = pattern(r"memor|remember|recall|topic|past|prior|preference|fact")
_FAR = pattern(r"(?:\b|_)(?:web|internet|online|website|weather|files?|code|email|calendar|shell)(?:\b|_)")

_TOPIC = re.compile(
    r"^\s*\[Memory: (?P<topic>[^\]]+)\]\s*(?P<value>.*?)(?:\nSaid since .*?\n(?P<since>.+))?$", re.DOTALL
)
_ITEM = re.compile(
    r"^\s*(?:\d+[.)]\s+(?:\((?:relevance|score|similarity)[:=]\s*-?[\d.]+\)\s*)?|[-*•]\s+)?"
    r"(?:(?P<date>\d{4}-\d{2}-\d{2}\S*|undated)\s+)?(?P<text>.+)$"
)
_EXCHANGE = re.compile(r"^(?:Q|User):\s*(?P<text>.*?)\s+(?:A|Assistant):\s*(?P<answer>.*)$", re.DOTALL)
_HEADING = pattern(r"^\s*(?:\[Memory recall\b.*\]|[\w ]*\b(?:found|memories|results?)\b.*:|#+ .*)?\s*$")
_NOTHING = re.compile(rf"^\s*{phrase_pattern('finds_nothing')}\s*$", re.IGNORECASE | re.DOTALL)
_FAILED = re.compile(rf"^\s*{phrase_pattern('fails')}\b", re.IGNORECASE | re.DOTALL)
_LIST_FIELDS, _DATE_FIELDS = lexicon.alternatives("for_list"), lexicon.alternatives("for_date")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedTool:
    """An announced tool with the parameters that its role fills; `fixed` are required ones that get a plain value."""

    spec: ToolSchema
    parameters: Mapping[str, str]
    fixed: Mapping[str, Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The tool for each thing that a conversation wants of a memory; one tool may have two roles."""

    save_topic: AnnouncedTool | None = None
    recall_topic: AnnouncedTool | None = None
    note: AnnouncedTool | None = None
    search: AnnouncedTool | None = None
    lists: AnnouncedTool | None = None
    forgets: Sequence[AnnouncedTool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMemory:
    """A memory that was found: what was said, and the answer it got, or what `topic` holds; `rank` counts from 0."""

    text: str
    topic: str = ""
    answer: str = ""
    date: str = ""
    id: str = ""
    rank: int = 0


_MISSING = re.compile(r"left out: (?P<what>[^\])\"]{1,60})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A call and what it gave: `value` is what `topic` holds, `failure` the words of a failure.

    `missing` is what a tool that saves has left out, in its words.
    """

    request: ToolRequest
    topic: str = ""
    value: str = ""
    failure: str = ""
    missing: str = ""
    findings: Sequence[FoundMemory] = ()


def assign_roles(tools: Sequence[ToolSchema]) -> Roles:
    """Return the best tool for each role; a tool whose required parameters cannot be filled has none."""
    near = [tool for tool in tools if _NEAR.search(tool.name) or not _FAR.search(f"{tool.name} {tool.description}")]
    read = [(tool, _verbs(tool)) for tool in near]
    savers = [tool for tool, verbs in read if verbs & _SAVE and not verbs & _FORGET]
    readers = [tool for tool, verbs in read if verbs & _READ and not verbs & _FORGET]
    forgetters = [tool for tool, verbs in read if verbs & _FORGET]
    return Roles(
        save_topic=_best(savers, "key", "text"),
        note=_best(savers, "text", without="key"),
        recall_topic=_best(readers, "key", without="text"),
        search=_best(readers, "query", without="text"),
        lists=_best([tool for tool, verbs in read if "list" in verbs]),
        forgets=[tool for one in forgetters for tool in [_best([one], kind) for kind in _KINDS] if tool],
    )


def tool_request(tool: AnnouncedTool, **given: str) -> ToolRequest:
    """Ask for a call; `given` are values by what they are for: `key`, `text`, `query`, `id`."""
    types = _types(tool.spec)
    filled = {tool.parameters[kind]: value for kind, value in given.items()}
    lists = {name: [value] for name, value in filled.items() if types[name].get("type") == "array"}
    return ToolRequest(name=tool.spec.name, arguments={**filled, **lists, **tool.fixed})


def can_list_all(search: AnnouncedTool) -> bool:
    """Say whether a search announces that it lists for a star."""
    return '"*" lists' in str(_types(search.spec).get(search.parameters["query"], {}).get("description", ""))


def is_save(request: ToolRequest) -> bool:
    """Say whether a call was one to save, by its name and arguments."""
    own = _parts(request.name)
    holds_text = any(name in request.arguments for name in _KINDS["text"]) and not own & _READ
    return (bool(own & _SAVE) or holds_text) and not is_forget(request)


def is_forget(request: ToolRequest) -> bool:
    """Say whether a call was one to forget."""
    return bool(_parts(request.name) & _FORGET)


def read_result(request: ToolRequest, text: str) -> ToolResult:
    """Read what a tool answered."""
    kept, reads, tree = _TOPIC.match(text), not (is_save(request) or is_forget(request)), None
    if kept and reads:
        since = [_finding(entry, rank) for rank, entry in enumerate(_lines(kept["since"] or ""))]
        return ToolResult(request=request, topic=kept["topic"], value=kept["value"].strip(), findings=since)
    if text.lstrip()[:1] in {"[", "{"}:
        with suppress(ValueError):
            tree = json.loads(text)
    is_refused = isinstance(tree, Mapping) and (False in (tree.get("success"), tree.get("ok")) or tree.get("error"))
    if _FAILED.match(text) or (is_refused and not reads) or (is_forget(request) and _NOTHING.match(text)):
        return ToolResult(request=request, failure=text.strip())
    missing = _MISSING.search(text) if is_save(request) else None
    if missing:
        return ToolResult(request=request, missing=missing["what"])
    entries = _lines(text) if tree is None else _entries(tree)
    found = [_finding(entry, rank) for rank, entry in enumerate(entries)] if reads and not _NOTHING.match(text) else []
    return ToolResult(request=request, findings=[one for one in found if one.text or one.answer])


def _lines(text: str) -> list[Mapping[str, Tree]]:
    items = (_ITEM.match(line) for line in text.splitlines() if not _HEADING.match(line))
    return [item.groupdict() for item in items if item]


def _entries(tree: Tree) -> list[Mapping[str, Tree]]:
    if isinstance(tree, Mapping):
        tree = next((tree[name] for name in _LIST_FIELDS if isinstance(tree.get(name), list)), [tree])
    entries = [one if isinstance(one, Mapping) else {"text": one} for one in tree]
    return [one["memory"] if isinstance(one.get("memory"), Mapping) else one for one in entries]


def _finding(entry: Mapping[str, Tree], rank: int) -> FoundMemory:
    more = entry.get("metadata")
    fields = {**(more if isinstance(more, Mapping) else {}), **entry}
    text, date, memory_id = (_first(fields, names) for names in (_KINDS["text"], _DATE_FIELDS, _KINDS["id"]))
    exchange = _EXCHANGE.match(text)
    said = exchange.groupdict() if exchange else {"text": text}
    if fields.get("speaker") == "assistant":
        # Its own answer is nothing that the user told.
        said = {"text": "", "answer": text}
    topic = _first(fields, ("topic",))
    return FoundMemory(**said, topic=topic, date=date.removeprefix("undated"), id=memory_id, rank=rank)


def _first(fields: Mapping[str, Tree], names: Sequence[str]) -> str:
    return next((str(fields[name]) for name in names if fields.get(name)), "")


def _best(tools: Sequence[ToolSchema], *need: str, without: str = "") -> AnnouncedTool | None:
    """Return the tool nearest to a memory that takes parameters of the kinds in `need` and can do without another."""
    fitting = []
    for spec in tools:
        types, required = _types(spec), set(spec.parameters.get("required") or ())
        names = {kind: next((name for name in _KINDS[kind] if name in types), "") for kind in {*need, without} - {""}}
        given = {kind: names[kind] for kind in need}
        fixed = {name: _plain_value(types.get(name, {})) for name in sorted(required - set(given.values()))}
        if all(given.values()) and names.get(without) not in required and None not in fixed.values():
            near = 2 * bool(_NEAR.search(spec.name)) + bool(_NEAR.search(spec.description))
            fitting.append((near, AnnouncedTool(spec=spec, parameters=given, fixed=fixed)))
    # `max` keeps the first of equals: the order of the announcement decides.
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _plain_value(schema: Mapping[str, Tree]) -> Tree | None:
    """Return a harmless value for a required parameter that no role fills; None if only its author knows one."""
    plain = {"integer": 5, "number": 1, "boolean": False, "object": {}, "array": []}.get(schema.get("type", ""))
    known = [schema.get("default"), *(schema.get("enum") or ())[:1], schema.get("minimum"), plain]
    return next((value for value in known if value is not None), None)


def _types(spec: ToolSchema) -> Mapping[str, Mapping[str, Tree]]:
    types = spec.parameters.get("properties") or {}
    return {name: one if isinstance(one, Mapping) else {} for name, one in types.items()}


def _verbs(spec: ToolSchema) -> set[str]:
    name = _parts(spec.name)
    return name if name & (_SAVE | _READ | _FORGET) else _parts(" ".join(spec.description.split()[:3]))


def _parts(name: str) -> set[str]:
    return {part.casefold() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
