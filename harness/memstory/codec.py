"""Frozen dataclasses to JSON and back, by their type hints: for recordings, results and targets in another process."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from memstory.target import Json

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""What most values are: looked up first, since whole corpora go through here."""


def encode(value: Any) -> Json:
    """Return `value` as plain JSON; dataclasses become objects with all their fields.

    >>> from memstory.target import Scope
    >>> encode(Scope(user="ann"))
    {'user': 'ann', 'session': None}
    """
    if type(value) in _PLAIN:
        return value
    if (names := _names(value.__class__)) is not None:
        # One call less for each plain field: there are hundreds of thousands.
        return {name: inner if type(inner := getattr(value, name)) in _PLAIN else encode(inner) for name in names}
    if isinstance(value, (list, tuple)):
        return [encode(inner) for inner in value]
    if isinstance(value, (dict, Mapping)):
        return {str(key): encode(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(encode(inner) for inner in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r:.80}")


def encode_fields(value: Any) -> Mapping[str, Any]:
    """Return the fields of a dataclass, for `json.dumps(…, default=encode_fields)`, which is quicker than `encode`."""
    names = _names(value.__class__)
    if names is None:
        raise TypeError(f"{type(value).__name__} is not JSON: {value!r:.80}")
    return {name: getattr(value, name) for name in names}


@cache
def _names(cls: type) -> tuple[str, ...] | None:
    return tuple(field.name for field in fields(cls)) if is_dataclass(cls) else None


def decode(hint: Any, data: Json) -> Any:
    """Return `data` as the type that `hint` names; fields that the dataclass does not know are an error.

    >>> from memstory.target import Scope
    >>> decode(Scope, {"user": "ann"})
    Scope(user='ann', session=None)
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner_hint,) = (arg for arg in args if arg is not type(None))
        return None if data is None else decode(inner_hint, data)
    if isinstance(hint, type) and is_dataclass(hint):
        return _decode_dataclass(hint, data)
    if origin in (Sequence, list, tuple):
        return tuple(decode(args[0], inner) for inner in data)
    if origin in (Mapping, dict):
        return {key: decode(args[1], inner) for key, inner in data.items()}
    if origin is Literal and data not in args:
        raise ValueError(f"{data!r} is none of {', '.join(map(repr, args))}")
    return frozenset(data) if origin is frozenset else data


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _decode_dataclass(cls: type, data: Json) -> Any:
    hints = _hints(cls)
    unknown = set(data) - set(hints)
    if unknown:
        raise ValueError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
    return cls(**{name: decode(hints[name], inner) for name, inner in data.items()})
