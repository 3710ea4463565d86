"""Types of what a story writes beside a word, and the grammar that follows from a type."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from memstory.contract.target import Tree

Schema: TypeAlias = dict[str, Tree]


class Rule(Schema):
    """More of the grammar of a type, as in `Annotated[str, "What is asked.", Rule(minLength=1)]`."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # a union hashes its types with their annotations


Name: TypeAlias = Annotated[str, Rule(minLength=1)]
Count: TypeAlias = Annotated[int, Rule(minimum=0)]
Duration: TypeAlias = Annotated[Any, Rule({"$ref": "#/$defs/duration"})]
InnerStep: TypeAlias = Annotated[Mapping[str, Any], Rule({"$ref": "#/$defs/step"})]
Nothing: TypeAlias = Annotated[Any, Rule(type=["null", "object", "boolean"], maxProperties=0)]
Role: TypeAlias = Literal["user", "assistant", "tool", "web"]
Kind: TypeAlias = Annotated[str, "The kind of memory."]
Kinds: TypeAlias = Annotated[str | list[str], "Kinds of memories, as the target calls them."]
Vector: TypeAlias = Annotated[list[float], "The numbers that stand for this text.", Rule(minItems=1)]

_TYPES: Final[Mapping[Any, str]] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", list: "array",
    Mapping: "object",
}  # fmt: skip


def grammar_of(shape: Any) -> Schema:
    """Return the JSON Schema of a type; a `TypedDict` is a mapping of its keys and no others.

    A text in `Annotated` is the description; a key is required if it is marked as `Required`.

    >>> grammar_of(Annotated[str | list[str], "One text or several."])
    {'description': 'One text or several.', 'type': ['string', 'array'], 'items': {'type': 'string'}}
    """
    origin, inner = get_origin(shape), get_args(shape)
    if is_typeddict(shape):
        keys = get_type_hints(shape, include_extras=True)
        needed = [name for name, one in keys.items() if get_origin(one) is Required]
        return {
            "type": "object",
            **({"required": needed} if needed else {}),
            "additionalProperties": False,
            "properties": {name: grammar_of(one) for name, one in keys.items()},
        }
    if origin is Annotated:
        texts = [{"description": one} for one in inner[1:] if isinstance(one, str)]
        return _merge(*texts, grammar_of(inner[0]), *(one for one in inner[1:] if isinstance(one, Rule)))
    if origin in (Union, UnionType):
        parts = [grammar_of(one) for one in inner]
        return _merge({"type": [part.pop("type") for part in parts]}, *parts)
    if origin is Required:
        return grammar_of(inner[0])
    if origin is Literal:
        return {"enum": list(inner)}
    type_ = _TYPES.get(origin or shape)
    element = grammar_of(inner[-1]) if inner else {}
    return _merge(
        {"type": type_} if type_ else {},
        {"items" if type_ == "array" else "additionalProperties": element} if element else {},
    )


def _merge(*parts: Schema) -> Schema:
    return {key: value for part in parts for key, value in part.items()}
