"""The tools of a server -> the draft of a `[targets.NAME]` table: names tell a part, the rest is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.target import ToolSchema, Tree

_VERBS: Final[Mapping[str, Sequence[str]]] = {
    "add": ("store", "add", "remember", "save", "create", "write", "insert", "put"),
    "search": ("search", "query", "recall", "retrieve", "find"),
    "list": ("list", "read", "all", "browse"),
    "get": ("get", "open", "fetch", "load", "look", "lookup", "read", "view"),
    "update": ("update", "edit", "replace", "modify", "change"),
    "delete": ("delete", "forget", "remove", "erase", "drop"),
}
_EMPTYING: Final = frozenset({*_VERBS["delete"], "clear", "wipe", "purge", "reset"})
"""What is in the name of a tool that takes memories away, whatever else the name says."""

_NOUNS: Final = (
    *("memory", "memories", "document", "documents", "note", "notes", "fact", "facts", "graph"),
    *("entity", "entities", "node", "nodes", "item", "items"),
)
_OTHER_NOUNS: Final = (
    *("collection", "collections", "relation", "relations", "session", "project", "projects"),
    *("workspace", "workspaces", "directory", "file", "tag", "tags", "schema", "stats", "count", "channel", "channels"),
)
_TEXT: Final = (
    *("content", "contents", "text", "texts", "document", "documents"),
    *("memory", "fact", "note", "observation", "observations", "data", "value"),
)
_ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "id": (
        *("id", "ids", "memory_id", "memory_ids", "note_id", "identifier"),
        *("content_hash", "uuid", "name", "names", "entitynames", "key", "keys"),
    ),
    "top_k": ("limit", "k", "top_k", "n_results", "max_results", "count", "size"),
    "key": ("key", "topic", "title", "name"),
    "kind": ("kind", "type", "memory_type", "entitytype", "entity_type", "category"),
    "metadata": ("metadata", "metadatas"),
    "query": ("query", "q", "queries", "query_text", "query_texts", "search", "search_query"),
    "session": ("session", "session_id", "conversation_id", "run_id", "thread_id"),
    "text": _TEXT,
    "user": ("user", "user_id", "owner", "owner_id", "namespace", "agent_id"),
}
"""For each placeholder the names of arguments that are taken to mean it."""

_FITS: Final[Mapping[str, Sequence[str]]] = {
    "add": ("text", "key", "kind", "metadata", "session", "user"),
    "search": ("query", "top_k", "session", "user"),
    "list": ("session", "user"),
    "get": ("id", "user"),
    "update": ("id", "text", "kind", "user"),
    "delete": ("id", "user"),
}
_NEEDED: Final = {"add": "text", "search": "query", "get": "id", "update": "id", "delete": "id"}
"""The placeholder without which a tool is hardly that operation."""

_ALWAYS: Final[Mapping[str, str]] = {"key": "own_id", "kind": "kind|note"}
"""What a required argument gets where a story may leave the placeholder open."""

_FORMATS: Final = ("output_format", "response_format", "format")
_OVERWRITING: Final = ("overwrite", "upsert")

_SHOWN: Final = 90
_USUAL_WORDS: Final = 3


def draft(name: str, start: Mapping[str, Tree], tools: Sequence[ToolSchema]) -> str:
    """Return a table in TOML; `start` is what reaches the server (`command` or `url`)."""
    lines = [f"[targets.{name}]", 'type = "mcp"', *(f"{key} = {_toml(value)}" for key, value in start.items())]
    if "command" in start and "env" not in start:
        lines.append('# env = { DATA_FOLDER = "{workspace}" }   # say where it keeps its data: each case has a folder')
    if "command" in start:
        lines.append('# lacks = ["persistent", "restart", "crash"]   # if it keeps memories only while it runs')
    guessed = guess(tools)
    for operation in _VERBS:
        lines += ["", *_operation(name, operation, guessed.get(operation))]
    left = [tool.name for tool in tools if tool not in guessed.values()]
    if left:
        lines += ["", f"# Tools that are not used: {', '.join(left)}"]
    return "\n".join([*lines, ""])


def guess(tools: Sequence[ToolSchema]) -> Mapping[str, ToolSchema]:
    """Return for each operation the tool that it most likely is; a tool is guessed once."""
    found: dict[str, ToolSchema] = {}
    for operation in _VERBS:
        free = [tool for tool in tools if tool not in found.values()]
        best = max(free, key=lambda tool: _likeness(operation, tool), default=None)
        if best is not None and _likeness(operation, best) > 0:
            found[operation] = best
    return found


def _likeness(operation: str, tool: ToolSchema) -> int:
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower())
    verbs = [place for place, verb in enumerate(_VERBS[operation]) if verb in words]
    if not verbs or (operation != "delete" and not _EMPTYING.isdisjoint(words)):
        return 0
    names = {_meaning(operation, argument) for argument in _properties(tool)}
    needed = _NEEDED.get(operation)
    if needed == "id" and needed not in names:
        return 0
    if operation == "list" and any(_meaning("list", name) is None for name in tool.parameters.get("required", ())):
        # What must be given a path or an id shows one thing, not all of them.
        return 0
    # An earlier verb, a noun of memories and the argument that the operation lives by make it likelier.
    points = 10 - min(verbs) + 5 * bool(set(_NOUNS) & set(words)) - 20 * bool(set(_OTHER_NOUNS) & set(words))
    return points + 8 * (needed is not None and _gives(operation, needed, tool)) - (len(words) > _USUAL_WORDS)


def _gives(operation: str, needed: str | None, tool: ToolSchema) -> bool:
    """Whether an argument can be given what the operation lives by."""
    return any(
        (_meaning(operation, name) == needed and _argument(operation, name, schema, is_required=True) is not None)
        or (operation == "add" and _objects(operation, schema) is not None)
        for name, schema in _properties(tool).items()
    )


def _operation(name: str, operation: str, tool: ToolSchema | None) -> Iterator[str]:
    if tool is None:
        yield f"# [targets.{name}.{operation}]"
        yield f"# No tool looks like '{operation}'. If one does it, name it here; if none does, leave this out."
        return
    yield f"[targets.{name}.{operation}]"
    yield f"tool = {_toml(tool.name)}"
    filled: dict[str, str] = {}
    for argument, schema in _properties(tool).items():
        is_required = argument in tool.parameters.get("required", ())
        value = _argument(operation, argument, schema, is_required=is_required)
        if value is not None:
            filled[argument] = value
        elif is_required:
            yield f"# FILL IN the argument {_toml(argument)} ({_description(schema)})"
    args = _inline(filled)
    if filled:
        yield f"args = {args}"
    yield from _reply(operation, gives_id="{own_id}" in args)


def _argument(operation: str, argument: str, schema: Mapping[str, Tree], *, is_required: bool) -> str | None:
    """Return what an argument gets, in TOML; None where nothing is known for it."""
    constant = _constant(operation, argument, schema)
    if constant is not None:
        return constant
    placeholder = _meaning(operation, argument)
    if is_required and operation == "add":
        placeholder = _ALWAYS.get(placeholder or "", placeholder)
    return _value(placeholder, schema) or (_objects(operation, schema) if operation == "add" else None)


def _objects(operation: str, schema: Mapping[str, Tree]) -> str | None:
    """Return a list of one object that has all that is required; None where that is not known or not asked for."""
    inner = schema.get("items")
    if "array" not in _types(schema) or not isinstance(inner, Mapping) or not inner.get("required"):
        return None
    parts = {
        name: _argument(operation, name, inner.get("properties", {}).get(name, {}), is_required=True)
        for name in inner["required"]
    }
    known = {name: part for name, part in parts.items() if part is not None}
    return f"[{_inline(known)}]" if known.keys() == parts.keys() else None


def _inline(parts: Mapping[str, str]) -> str:
    return f"{{ {', '.join(f'{_key(name)} = {value}' for name, value in parts.items())} }}"


def _reply(operation: str, *, gives_id: bool) -> Iterator[str]:
    if gives_id:
        yield "# What {own_id} stands for is the memory's id; if its reply gives another:"
        yield '# reply = { id = "id" }'
    elif operation == "add":
        yield "# FILL IN where its reply has the new id, or leave this out if it gives none:"
        yield '# reply = { id = "id" }'
    elif operation in ("search", "list", "get"):
        yield "# FILL IN where its reply has the memories (`memstory mcp call` shows one):"
        yield '# reply = { at = "results", id = "id", text = "content" }'
    elif operation in ("update", "delete"):
        yield "# FILL IN what it says of an id that it does not know, as a regular expression:"
        yield '# missing = "not found"'
    if operation == "search":
        yield '# scores = "similarity"    # with score = "…" in reply; or "distance"'


def _meaning(operation: str, argument: str) -> str | None:
    for placeholder in _FITS[operation]:
        if argument.lower() in _ARGUMENTS[placeholder]:
            return placeholder
    return None


def _constant(operation: str, argument: str, schema: Mapping[str, Tree]) -> str | None:
    """Return what an argument should always be: JSON, which a table can read, and an add that replaces."""
    if argument.lower() in _FORMATS and "json" in schema.get("enum", ()):
        return '"json"'
    replaces = operation == "add" and argument.lower() in _OVERWRITING and "boolean" in _types(schema)
    return "true" if replaces else None


def _value(placeholder: str | None, schema: Mapping[str, Tree]) -> str | None:
    """Return the placeholder in the shape that `schema` wants; None if there is none."""
    if placeholder is None:
        return None
    kinds = _types(schema)
    if "array" in kinds and "string" not in kinds:
        of = schema.get("items", {})
        return f'["{{{placeholder}}}"]' if isinstance(of, Mapping) and _types(of) <= {"string"} else None
    wants_object = placeholder == "metadata"
    return f'"{{{placeholder}}}"' if not kinds or wants_object == ("object" in kinds) else None


def _types(schema: Mapping[str, Tree]) -> set[str]:
    own = schema.get("type", ())
    found = {own} if isinstance(own, str) else set(own)
    for key in ("anyOf", "oneOf"):
        for inner in schema.get(key, ()):
            found |= _types(inner)
    return found - {"null"}


def _properties(tool: ToolSchema) -> Mapping[str, Mapping[str, Tree]]:
    return {
        name: schema if isinstance(schema, Mapping) else {}
        for name, schema in (tool.parameters.get("properties") or {}).items()
    }


def _description(schema: Mapping[str, Tree]) -> str:
    if choices := schema.get("enum"):
        return f"one of: {', '.join(map(str, choices))}"
    kinds = " or ".join(sorted(_types(schema))) or "anything"
    inner = schema.get("items")
    if isinstance(inner, Mapping) and (names := inner.get("required") or inner.get("properties")):
        kinds += f" of {{ {', '.join(names)} }}"
    words = " ".join(str(schema.get("description", "")).split())
    said = f"{kinds}: {words}" if words else kinds
    return said if len(said) <= _SHOWN else f"{said[: _SHOWN - 1]}…"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Tree) -> str:
    # A JSON text is a TOML text too, and so is a list of them.
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {_toml(inner)}' for name, inner in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)
