"""A `[targets.NAME]` table -> `ToolTable`: checked with `table.schema.json`; messages name file, table and key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jsonschema import Draft202012Validator, ValidationError

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.language.capabilities import is_known
from memstory.language.reading import compile_pattern
from memstory.language.registry import suggestion
from memstory.targets.tables.replies import Path, Rows, Shape, Transform, parse_path
from memstory.targets.tables.table import (
    ALWAYS,
    NAMES,
    OPERATIONS,
    STARTING,
    STARTING_NAMES,
    Call,
    Operation,
    ToolTable,
    check_sharing,
    names_user,
)
from memstory.targets.tables.templates import Template, parse_template, placeholders

TYPES: Final = ("mcp", "http")
_SHOWN: Final = 80


@cache
def schema() -> Mapping[str, Tree]:
    """Return the JSON Schema of `memstory.toml`."""
    text = files("memstory.targets.tables").joinpath("table.schema.json").read_text("utf-8")
    read: Mapping[str, Tree] = json.loads(text)
    return read


def check_table(where: str, table: Mapping[str, Tree]) -> None:
    """Raise SetupError with everything that is wrong with `table`; `where` begins each line."""
    if "target" in table:
        kind = "class"
    else:
        kind = table.get("type", "")
        if kind not in TYPES:
            said = f"type = {json.dumps(kind)}" if "type" in table else "there is no 'type'"
            near = suggestion(str(kind), TYPES)
            raise SetupError(f'{where} {said}.{near} Allowed: type = "mcp", type = "http", or target = "module:Class".')
    validator = Draft202012Validator({"$ref": f"#/$defs/{kind}Target", "$defs": schema()["$defs"]})
    lines = list(dict.fromkeys(_messages(where, validator, table)))
    if lines:
        raise SetupError("\n".join(lines))


def place_of(where: str, path: Sequence[str | int]) -> str:
    """Return where a key is: `where` is `file: [targets.name]`, and the path goes on in the brackets.

    >>> place_of("memstory.toml: [targets.mine]", ["search", "calls", 0])
    'memstory.toml: [targets.mine.search.calls[0]]'
    """
    inner = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{where.removesuffix(']')}{inner}]"


def _messages(where: str, validator: Draft202012Validator, table: Mapping[str, Tree]) -> Iterator[str]:
    for error in sorted(validator.iter_errors(table), key=lambda one: [str(part) for part in one.absolute_path]):
        path = list(error.absolute_path)
        match error.validator:
            case "unevaluatedProperties" | "additionalProperties":
                allowed = sorted(_known_keys(error.schema))
                for name in sorted(set(error.instance) - set(allowed)):
                    said = f"unknown key '{name}'.{suggestion(name, allowed)} Allowed: {', '.join(allowed)}."
                    yield f"{place_of(where, path)} {said}"
            case "required":
                missing = ", ".join(f"'{name}'" for name in error.validator_value if name not in error.instance)
                yield f"{place_of(where, path)} lacks {missing}"
            case "oneOf":
                yield f"{place_of(where, path)} wants exactly one of {_choice(error)}"
            case "anyOf":
                yield f"{place_of(where, path)} lacks {_choice(error)}"
            case _:
                yield f"{place_of(where, path[:-1])} {_wrong_value(path, error)}"


def _choice(error: ValidationError) -> str:
    choice: Any = error.validator_value
    return " or ".join(" and ".join(f"'{name}'" for name in one["required"]) for one in choice)


def _wrong_value(path: Sequence[str | int], error: ValidationError) -> str:
    found = json.dumps(error.instance, ensure_ascii=False, default=str)
    found = found if len(found) <= _SHOWN else f"{found[:_SHOWN]}…"
    bound: Any = error.validator_value
    wanted = {
        "type": f"wants a value of type {bound}",
        "enum": f"is one of {', '.join(map(str, bound)) if error.validator == 'enum' else ''}",
        "minItems": "must not be empty",
        "minLength": "must not be empty",
    }
    said = wanted.get(str(error.validator), error.message)
    return f"'{path[-1] if path else ''}' {said}; found {found}"


def _known_keys(part: Any) -> set[str]:
    """Return the keys that a schema names, in itself and in what it refers to."""
    keys = set(part.get("properties", {}))
    if "$ref" in part:
        keys |= _known_keys(schema()["$defs"][part["$ref"].rpartition("/")[2]])
    return keys.union(*(_known_keys(one) for one in part.get("allOf", ())))


_CALL_KEYS: Final = frozenset({"save", "accepts"})
_SPEC_KEYS: Final = frozenset({"tool", "args", "method", "path", "query", "body", "headers"})
_GENERAL: Final = frozenset(
    {
        *OPERATIONS,
        *("type", "setup", "teardown", "serial", "about", "capabilities", "lacks", "missing", "refuses", "fails"),
    }
)
_FIELDS: Final = ("id", "text", "score", "kind", "key", "created_at", "metadata")
_NEEDS_ROWS: Final = frozenset({"get", "get_key", "search", "list"})


def parse_table(name: str, tree: Mapping[str, Tree], file: str, folder: str = ".") -> ToolTable:
    """Return the table `name` of `file`, which lies in `folder`.

    Raises:
        SetupError: a key, a placeholder, a path or a pattern that is wrong, with its place and what is allowed; a
            server for many cases on which an operation would reach the memories of others.
    """
    where = f"{file}: [targets.{name}]"
    check_table(where, tree)
    operations = {one: _operation(one, tree[one], tree, where) for one in OPERATIONS if one in tree}
    table = ToolTable(
        name=name,
        where=where,
        type=tree["type"],
        folder=folder,
        settings={key: value for key, value in tree.items() if key not in _GENERAL},
        operations=operations,
        setup=_calls("setup", tree.get("setup", ()), where),
        teardown=_calls("teardown", tree.get("teardown", ()), where),
        serial=tree.get("serial", False),
        about=tree.get("about", {}),
        can=_capabilities(where, "capabilities", tree),
        cannot=_capabilities(where, "lacks", tree),
    )
    _check_look_ups(table)
    for key in STARTING:
        template_of(f"{where} '{key}'", table.settings.get(key), STARTING_NAMES[table.type])
    if table.type == "http" and "command" in table.settings:
        _check_port(table)
    if "command" not in table.settings:
        check_sharing(table)
    return table


def _check_port(table: ToolTable) -> None:
    where, settings = table.where, table.settings
    if "port" not in placeholders(parse_template([settings["command"], settings.get("env")])):
        raise SetupError(
            f"{where} 'command' lacks {{port}}, the free port that memstory chooses, as in "
            'command = ["python", "server.py", "--port", "{port}"] or env = { PORT = "{port}" }'
        )
    if "{port}" not in settings.get("url", "{port}"):
        raise SetupError(
            f"{where} 'url' lacks {{port}}, as in \"http://127.0.0.1:{{port}}/v1\"; leave out 'command' for a server "
            "that runs already"
        )
    if names_user(table):
        raise SetupError(f"{where} 'command' names {{user}}, but one server answers for all users of a story")


def template_of(where: str, tree: Tree, names: Iterable[str]) -> Template:
    """Return `tree` as a template; SetupError for a placeholder that is none of `names`."""
    try:
        template = parse_template(tree)
    except ValueError as error:
        raise SetupError(f"{where} has {error}") from error
    allowed = sorted({*names, *ALWAYS})
    for used in placeholders(template):
        if used not in allowed:
            known = ", ".join(f"{{{one}}}" for one in allowed)
            near = " Write {top_k}, as in stories." if used == "k" and "top_k" in allowed else suggestion(used, allowed)
            raise SetupError(f"{where} unknown placeholder {{{used}}}.{near} Known here: {known}.")
    return template


def _operation(name: str, tree: Mapping[str, Any], target: Mapping[str, Any], table: str) -> Operation:
    where = place_of(table, [name])
    calls = _calls(name, tree.get("calls", [tree]), where, inline="calls" not in tree)
    saved = [one for call in calls for one in call.save]
    names = [*NAMES[name], *saved]
    reply = tree.get("reply")
    scores = tree.get("scores")
    if name in _NEEDS_ROWS and reply is None:
        raise SetupError(f"{where} lacks 'reply': say where in the reply 'text' and 'id' are found")
    if scores is None and reply and ("score" in reply or "(?P<score>" in reply.get("pattern", "")):
        raise SetupError(f"{where} reads a score, but 'scores' does not say what it is; allowed: similarity, distance")
    if name != "add" and any(call.takes_items for call in calls):
        raise SetupError(f"{where} has an 'each', which only 'add' can have: the others are about one memory")
    return Operation(
        name=name,
        where=where,
        calls=calls,
        rows=_rows(name, where, reply, tree) if reply is not None else None,
        id=template_of(f"{where} 'id'", tree.get("id", _sent_id(name, tree)), names),
        keep={
            path: (_path(f"{where} 'keep'", path), template_of(f"{where} 'keep'", value, names))
            for path, value in tree.get("keep", {}).items()
        },
        look_up=tree.get("look_up", False),
        missing=_pattern(where, "missing", tree.get("missing", target.get("missing"))),
        refuses=_pattern(where, "refuses", tree.get("refuses", target.get("refuses"))),
        fails=_pattern(where, "fails", tree.get("fails", target.get("fails"))),
        outcomes={word: _compile(f"{where} 'outcomes'", one) for word, one in tree.get("outcomes", {}).items()},
        **{one: tree[one] for one in ("scores", "overfetch", "max_top_k", "page_size", "batch") if one in tree},
    )


def _sent_id(name: str, tree: Mapping[str, Any]) -> str | None:
    """Return what an `add` sends as the id that memstory chose; None where it is unclear or the reply gives one."""
    reply = tree.get("reply", {})
    gives_one = "id" in reply or "(?P<id>" in reply.get("pattern", "")
    calls = tree.get("calls", [tree]) if name == "add" and not gives_one else []
    sent = {
        # A part of a path is the id alone.
        text if key != "path" else f"{{{own}}}"
        for call in calls
        for key in _SPEC_KEYS & call.keys()
        for text in _texts(call[key])
        for own in ("own_id", "new_id")
        if f"{{{own}}}" in text
    }
    return sent.pop() if len(sent) == 1 else None


def _texts(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    else:
        for one in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ():
            yield from _texts(one)


def _calls(operation: str, trees: Sequence[Mapping[str, Any]], where: str, *, inline: bool = False) -> Sequence[Call]:
    calls: list[Call] = []
    saved: list[str] = []
    for number, tree in enumerate(trees):
        place = where if inline else place_of(where, ["calls" if operation in OPERATIONS else operation, number])
        names = [*NAMES[operation], *saved]
        spec = {key: template_of(f"{place} '{key}'", value, names) for key, value in tree.items() if key in _SPEC_KEYS}
        save = {name: _path(f"{place} 'save'", path) for name, path in tree.get("save", {}).items()}
        calls.append(Call(where=place, spec=spec, save=save, accepts=_pattern(place, "accepts", tree.get("accepts"))))
        saved += save
    return tuple(calls)


def _rows(name: str, where: str, reply: Mapping[str, Any], tree: Mapping[str, Any]) -> Rows:
    place = place_of(where, ["reply"])
    pattern = _pattern(place, "pattern", reply.get("pattern"))
    fields = {field: _path(f"{place} '{field}'", reply[field]) for field in _FIELDS if field in reply}
    if pattern is not None:
        wrong = sorted(set(reply) - {"pattern", "within"})
        if wrong:
            raise SetupError(f"{place} has a 'pattern' and '{wrong[0]}': the pattern's named groups are the fields")
        groups = sorted(pattern.groupindex)
        for group in groups:
            if group not in _FIELDS:
                near = suggestion(group, _FIELDS)
                raise SetupError(f"{place} 'pattern' has the group '{group}'.{near} Known: {', '.join(_FIELDS)}.")
    elif not fields:
        raise SetupError(
            f"{place} reads nothing: give paths for {', '.join(_FIELDS)}, or a 'pattern' with named groups"
        )
    names = pattern.groupindex if pattern is not None else fields
    if name in _NEEDS_ROWS and "text" not in names:
        raise SetupError(f"{place} does not say where the 'text' is")
    shape: Shape = "pattern" if pattern is not None else "columns" if reply.get("columns") else "rows"
    return Rows(
        shape=shape,
        at=_path(f"{place} 'at'", reply["at"]) if "at" in reply else None,
        fields=fields,
        pattern=pattern,
        within=_pattern(place, "within", reply.get("within")),
        transform=_transform(tree),
        hidden=tuple(reply.get("hidden", ())),
    )


def _transform(tree: Mapping[str, Any]) -> Transform:
    usual: Transform = "-x" if tree.get("scores") == "distance" else "x"
    chosen: Transform = tree.get("transform", usual)
    return chosen


def _path(where: str, written: str) -> Path:
    try:
        return parse_path(written)
    except ValueError as error:
        raise SetupError(f"{where}: {error}") from error


def _pattern(where: str, key: str, written: str | None) -> re.Pattern[str] | None:
    return None if written is None else _compile(f"{where} '{key}'", written)


def _compile(where: str, written: str) -> re.Pattern[str]:
    try:
        return compile_pattern(written)
    except ValueError as error:
        raise SetupError(f"{where}: {error}") from error


def _capabilities(where: str, key: str, tree: Mapping[str, Any]) -> frozenset[str]:
    for word in tree.get(key, ()):
        if not is_known(word):
            raise SetupError(
                f"{where} '{key}' has the unknown word '{word}'; `memstory explain` shows those that stories use"
            )
    return frozenset(tree.get(key, ()))


def _check_look_ups(table: ToolTable) -> None:
    for operation in table.operations.values():
        needs = operation.look_up or any(name.startswith("old_") for name in operation.names)
        if needs and not {"get", "get_key"} & set(table.operations):
            raise SetupError(f"{operation.where} looks the memory up first, but there is no [targets.{table.name}.get]")
