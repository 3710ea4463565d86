"""Which announced tool does what, read from names, descriptions and parameters, as a language model reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.ports import ToolRequest, ToolSpec, Tree

_KEYS = ("topic", "key", "topic_key", "slot", "label", "name", "title")
_TEXTS = (
    "content",
    "text",
    "value",
    "memory",
    "fact",
    "note",
    "data",
    "document",
    "documents",
    "texts",
    "contents",
    "body",
    "message",
    "memories",
)
_QUERIES = ("query", "q", "search", "search_query", "question", "query_text", "query_texts", "queries")
_IDS = ("memory_id", "id", "content_hash", "hash", "ids", "memory_ids", "entry_id", "record_id", "document_id")

_SAVE = frozenset(
    [
        "save",
        "store",
        "add",
        "remember",
        "write",
        "put",
        "set",
        "create",
        "insert",
        "record",
        "note",
        "upsert",
        "memorize",
        "memorise",
        "ingest",
        "append",
        "keep",
    ]
)
_READ = frozenset(
    ["recall", "get", "read", "lookup", "fetch", "retrieve", "load", "search", "find", "query", "list", "look"]
)
_FORGET = frozenset(["forget", "delete", "remove", "erase", "clear", "drop", "purge"])
_NEAR = re.compile(r"memor|remember|recall|topic|past|prior|preference|fact", re.IGNORECASE)
_FAR = re.compile(
    r"\b(?:web|internet|online|website|weather|file|files|code|email|calendar|http|shell)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """An announced tool with the parameters that its role fills; `fixed` are required ones that get a plain value."""

    spec: ToolSpec
    key: str | None = None
    text: str | None = None
    query: str | None = None
    id: str | None = None
    fixed: Mapping[str, Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The tool for each thing that a conversation wants of a memory; one tool may have two roles."""

    save_topic: Tool | None = None
    recall_topic: Tool | None = None
    note: Tool | None = None
    search: Tool | None = None
    forget: Tool | None = None


def assign(tools: Sequence[ToolSpec]) -> Roles:
    """Return the best tool for each role; a tool whose required parameters cannot be filled has none."""
    read = [(tool, _verbs(tool)) for tool in tools if _is_memory(tool)]
    return Roles(
        save_topic=_best(read, _SAVE, need=("key", "text")),
        note=_best(read, _SAVE, need=("text",), without=("key",)),
        recall_topic=_best(read, _READ, need=("key",), without=("text",)),
        search=_best(read, _READ, need=("query",), without=("text",)),
        forget=_forget(read),
    )


def save_topic_call(tool: Tool, topic: str, content: str) -> ToolRequest:
    """Ask for `content` to be kept under `topic`."""
    return _call(tool, {tool.key: topic, tool.text: content})


def note_call(tool: Tool, content: str) -> ToolRequest:
    """Ask for `content` to be kept, to be found by its meaning."""
    return _call(tool, {tool.text: content})


def recall_call(tool: Tool, topic: str) -> ToolRequest:
    """Ask for what is kept under `topic`."""
    return _call(tool, {tool.key: topic})


def search_call(tool: Tool, query: str) -> ToolRequest:
    """Ask for what is near to `query`."""
    return _call(tool, {tool.query: query})


def forget_call(tool: Tool, *, topic: str, thing: str, memory_id: str | None) -> ToolRequest | None:
    """Ask to forget by what the tool takes: an id, a topic or words; None if it takes an id and none is known."""
    if tool.id is not None:
        return _call(tool, {tool.id: memory_id}) if memory_id else None
    return _call(tool, {tool.key: topic} if tool.key else {tool.query or tool.text: thing})


def _call(tool: Tool, given: Mapping[str | None, str]) -> ToolRequest:
    properties = _properties(tool.spec)
    arguments = {name: [value] if _is_list(properties[name]) else value for name, value in given.items() if name}
    return ToolRequest(name=tool.spec.name, arguments={**arguments, **tool.fixed})


def _best(
    tools: Sequence[tuple[ToolSpec, set[str]]],
    verbs: frozenset[str],
    *,
    need: Sequence[str],
    without: Sequence[str] = (),
) -> Tool | None:
    fitting = []
    for spec, own in tools:
        tool = _tool(spec, need, required_too=without)
        if tool is not None and own & verbs and not own & _FORGET:
            fitting.append((_nearness(spec), tool))
    # `max` keeps the first of equals: the order of the announcement decides.
    return max(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _forget(tools: Sequence[tuple[ToolSpec, set[str]]]) -> Tool | None:
    for spec, own in tools:
        if own & _FORGET:
            for need in ("key", "query", "id", "text"):
                tool = _tool(spec, (need,))
                if tool is not None:
                    return tool
    return None


def _tool(spec: ToolSpec, need: Sequence[str], required_too: Sequence[str] = ()) -> Tool | None:
    """Return `spec` with the parameters of the kinds in `need`; None if one is missing or another cannot be filled."""
    properties = _properties(spec)
    kinds = {kind: next((name for name in names if name in properties), None) for kind, names in _KINDS.items()}
    if any(kinds[kind] is None for kind in need):
        return None
    required = set(spec.parameters.get("required") or ())
    if any(kinds[kind] in required for kind in required_too):
        return None
    given = {kinds[kind] for kind in need}
    fixed = {name: _plain_value(properties[name]) for name in sorted(required - {name for name in given if name})}
    if any(value is None for value in fixed.values()):
        return None
    parts = {kind: kinds[kind] for kind in need}
    return Tool(
        spec=spec,
        key=parts.get("key"),
        text=parts.get("text"),
        query=parts.get("query"),
        id=parts.get("id"),
        fixed=fixed,
    )


_KINDS: Mapping[str, Sequence[str]] = {"key": _KEYS, "text": _TEXTS, "query": _QUERIES, "id": _IDS}


def _plain_value(schema: Mapping[str, Tree]) -> Tree | None:
    """Return a harmless value for a required parameter that no role fills; None if only its author knows one."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    plain = {
        "integer": schema.get("minimum", 5),
        "number": schema.get("minimum", 1),
        "boolean": False,
        "object": {},
        "array": [],
    }
    kind = schema.get("type")
    return plain.get(kind) if isinstance(kind, str) else None


def _properties(spec: ToolSpec) -> Mapping[str, Mapping[str, Tree]]:
    found = spec.parameters.get("properties") or {}
    return {name: schema if isinstance(schema, Mapping) else {} for name, schema in found.items()}


def _is_list(schema: Mapping[str, Tree]) -> bool:
    return schema.get("type") == "array"


def _verbs(spec: ToolSpec) -> set[str]:
    name = _parts(spec.name)
    if name & (_SAVE | _READ | _FORGET):
        return name
    return {word.casefold() for word in re.findall(r"[A-Za-z]+", spec.description)[:3]}


def _is_memory(spec: ToolSpec) -> bool:
    return bool(_NEAR.search(spec.name)) or not _FAR.search(f"{spec.name.replace('_', ' ')} {spec.description}")


def _nearness(spec: ToolSpec) -> int:
    return 2 * bool(_NEAR.search(spec.name)) + bool(_NEAR.search(spec.description))


def saves(request: ToolRequest) -> bool:
    """Say whether a call was one to save, by its name and arguments."""
    return (bool(_parts(request.name) & _SAVE) and not forgets(request)) or _holds_text(request)


def forgets(request: ToolRequest) -> bool:
    """Say whether a call was one to forget."""
    return bool(_parts(request.name) & _FORGET)


def writes(request: ToolRequest) -> bool:
    """Say whether a call changed the memory."""
    return saves(request) or forgets(request)


def _holds_text(request: ToolRequest) -> bool:
    return any(name in request.arguments for name in _TEXTS) and not _parts(request.name) & _READ


def _parts(name: str) -> set[str]:
    return {part.casefold() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
