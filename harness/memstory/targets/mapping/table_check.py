"""A `[targets.NAME]` table, validated with `table.schema.json`: messages name file, table and key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jsonschema import Draft202012Validator, ValidationError

from memstory.contract.errors import SetupError
from memstory.contract.target import Tree
from memstory.language.registry import nearest

TYPES: Final = ("mcp", "http")
_SHOWN: Final = 80


@cache
def schema() -> Mapping[str, Tree]:
    """Return the JSON Schema of `memstory.toml`."""
    text = files("memstory.targets.mapping").joinpath("table.schema.json").read_text("utf-8")
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
            near = nearest(str(kind), TYPES)
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
                    said = f"unknown key '{name}'.{nearest(name, allowed)} Allowed: {', '.join(allowed)}."
                    yield f"{place_of(where, path)} {said}"
            case "required":
                missing = ", ".join(f"'{name}'" for name in error.validator_value if name not in error.instance)
                yield f"{place_of(where, path)} lacks {missing}"
            case "oneOf":
                choice = [" and ".join(f"'{name}'" for name in one["required"]) for one in error.validator_value]
                yield f"{place_of(where, path)} wants exactly one of {' or '.join(choice)}"
            case _:
                yield f"{place_of(where, path[:-1])} {_wrong_value(path, error)}"


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
