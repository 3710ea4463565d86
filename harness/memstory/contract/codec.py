"""Frozen dataclasses to JSON and back, by their type hints: for recordings, results and targets in another process."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from memstory.contract.target import Tree

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""What most values are: looked up first, since whole corpora go through here."""

_NOT_FINITE: Final = ("nan", "inf", "-inf")
"""JSON has no word for these numbers: a file that keeps to JSON has them as texts."""

_EMPTY: Final[Sequence[Tree]] = (None, [], {})

Decoder: TypeAlias = Callable[[Tree], Any]


class Misfit(ValueError):  # noqa: N818  (data that is not of the type asked for; who decodes it says what that means)
    """Data that does not fit a type; the message starts with its place, such as `cases[3].trials[0].outcome`."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(f"{place.removeprefix('.')}: {message}" if place else message)
        self.message = message
        self.place = place


def encode(value: Any) -> Tree:
    """Return `value` as plain JSON; dataclasses become objects with all their fields.

    >>> from memstory.contract.target import Scope
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


def encode_lean(value: Any) -> Tree:
    """Return what `encode` does without the fields that are empty, as by default; `decode` puts them back.

    >>> from memstory.contract.target import Scope
    >>> encode_lean(Scope(user="ann"))
    {'user': 'ann'}
    """
    names = _names(value.__class__)
    if names is None:
        if isinstance(value, (list, tuple)):
            return [encode_lean(inner) for inner in value]
        return encode(value)
    empty = _empty_defaults(value.__class__)
    # Most fields are empty: they are left out before anything is made of them.
    return {
        name: inner if type(inner) in _PLAIN else encode_lean(inner)
        for name in names
        if (inner := getattr(value, name)) or name not in empty
        or (inner != empty[name] and encode(inner) != encode(empty[name]))
    }  # fmt: skip


def encode_fields(value: Any) -> Mapping[str, Any]:
    """Return the fields of a dataclass, for `json.dumps(…, default=encode_fields)`, which is quicker than `encode`."""
    names = _names(value.__class__)
    if names is None:
        raise TypeError(f"{type(value).__name__} is not JSON: {value!r:.80}")
    return {name: getattr(value, name) for name in names}


@cache
def _names(cls: type) -> tuple[str, ...] | None:
    return tuple(field.name for field in fields(cls)) if is_dataclass(cls) else None


@cache
def _empty_defaults(cls: type) -> Mapping[str, Any]:
    """Return the fields of `cls` that are empty by default, with that default."""
    return {field.name: _default(field) for field in fields(cls) if default_of(field) in _EMPTY}


def default_of(field: Field[Any]) -> Tree:
    """Return the default of `field` as JSON, MISSING if it has none."""
    default = _default(field)
    return MISSING if default is MISSING else encode(default)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def decode(hint: Any, data: Tree) -> Any:
    """Return `data` as the type that `hint` names; Misfit if it does not fit, or has fields that nobody knows.

    >>> from memstory.contract.target import Scope
    >>> decode(Scope, {"user": "ann"})
    Scope(user='ann', session=None)
    """
    return _decoder(hint)(data)


@cache
def _decoder(hint: Any) -> Decoder:
    origin, args = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda data: _dataclass(hint, data)
    if origin is None:
        return _decoder_of_plain(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (_decoder(arg) for arg in args if arg is not type(None))
        return lambda data: None if data is None else inner(data)
    if origin in (Sequence, list, tuple):
        return _decoder_of_list(args[0])
    if origin in (Mapping, dict):
        return _decoder_of_mapping(args[1])
    return frozenset if origin is frozenset else lambda data: _one_of(args, data)


def _decoder_of_plain(hint: Any) -> Decoder:
    if hint in (str, int, bool):
        return lambda data: data if type(data) is hint else _check_kind(data, hint)
    return _number if hint is float else lambda data: data


def _decoder_of_list(hint: Any) -> Decoder:
    inner = _decoder(hint)

    def read(data: Tree) -> Any:
        made: list[Any] = []
        values = _check_kind(data, list)
        try:
            for value in values:
                made.append(inner(value))  # noqa: PERF401  (its length says at which value it stopped)
        except Misfit as error:
            raise Misfit(error.message, f"[{len(made)}]{error.place}") from None
        return tuple(made)

    return read


def _decoder_of_mapping(hint: Any) -> Decoder:
    inner = _decoder(hint)

    def read(data: Tree) -> Any:
        made, name, pairs = {}, "", _check_kind(data, dict).items()
        try:
            for name, value in pairs:
                made[name] = inner(value)
        except Misfit as error:
            raise Misfit(error.message, f".{name}{error.place}") from None
        return made

    return read


def _check_kind(data: Tree, wanted: type) -> Any:
    if not isinstance(data, (list, tuple) if wanted is list else wanted):
        names = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}
        raise Misfit(f"{data!r:.60} is not {names[wanted]}")
    return data


def _one_of(allowed: Sequence[Tree], data: Tree) -> Tree:
    if data not in allowed:
        raise Misfit(f"{data!r:.60} is none of {', '.join(map(repr, allowed))}")
    return data


def _number(data: Tree) -> float:
    if data in _NOT_FINITE:
        return float(data)
    if not isinstance(data, (int, float)):
        raise Misfit(f"{data!r:.60} is not a number")
    return data


@cache
def _field_decoders(cls: type) -> tuple[Mapping[str, Decoder], frozenset[str]]:
    hints = get_type_hints(cls)
    needed = frozenset(field.name for field in fields(cls) if default_of(field) is MISSING)
    return {field.name: _decoder(hints[field.name]) for field in fields(cls)}, needed


def _dataclass(cls: type, data: Tree) -> Any:
    decoders, needed = _field_decoders(cls)
    names = _check_kind(data, dict).keys()
    if not names <= decoders.keys():
        raise Misfit(f"{cls.__name__} has no {next(name for name in names if name not in decoders)}")
    if missing := needed - names:
        raise Misfit(f"{', '.join(sorted(missing))} is missing")
    made, name = {}, ""
    try:
        for name, inner in data.items():
            made[name] = decoders[name](inner)
    except Misfit as error:
        raise Misfit(error.message, f".{name}{error.place}") from None
    return cls(**made)
