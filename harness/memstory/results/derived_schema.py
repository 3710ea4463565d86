"""The JSON Schema of results.json, derived from the classes of a run; docs/reference has it written out."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from memstory.contract.codec import default_of
from memstory.contract.target import Tree
from memstory.results.runs import SCHEMA, Run

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ABOUT: Final = (
    "What one run found out. The same run gives the same file, except for fields named `seconds`,"
    " `embedding_seconds` and `started`. An optional field that is empty is left out. Numbers have six digits."
)
_TYPES: Final[Mapping[object, Tree]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]},
    type(None): {"type": "null"},
}


def results_schema() -> Tree:
    """Return the schema, with a definition for each class."""
    parts: dict[str, Tree] = {}
    top = _schema(Run, parts)
    return {"$schema": _DIALECT, "title": SCHEMA, "description": _ABOUT, **top, "$defs": dict(sorted(parts.items()))}


def _schema(hint: Any, parts: dict[str, Tree]) -> Tree:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(arg, parts) for arg in args]}
    if isinstance(hint, type) and is_dataclass(hint):
        if hint.__name__ not in parts:
            parts[hint.__name__] = {}  # a class may hold itself
            parts[hint.__name__] = _of_class(hint, parts)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin in (Sequence, list, tuple):
        return {"type": "array", "items": _schema(args[0], parts)}
    if origin in (Mapping, dict):
        named = {"propertyNames": _schema(args[0], parts)} if get_origin(args[0]) is Literal else {}
        return {"type": "object", **named, "additionalProperties": _schema(args[1], parts)}
    if origin is Literal:
        return {"enum": list(args)}
    return _TYPES.get(hint, {})


def _of_class(cls: type, parts: dict[str, Tree]) -> Tree:
    hints = get_type_hints(cls)
    defaults = {field.name: default_of(field) for field in fields(cls)}
    return {
        "description": " ".join((inspect.getdoc(cls) or "").split()),
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, default in defaults.items() if default is MISSING],
        "properties": {
            name: {**_schema(hints[name], parts), **({} if default is MISSING else {"default": default})}
            for name, default in defaults.items()
        },
    }
