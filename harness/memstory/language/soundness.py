"""Tells quickly that a tree fits a JSON Schema, so that only trees that do not are held against it at length.

A validator walks the schema anew for every tree; here each schema is turned once into plain functions. They say yes or
no, and a no may be too strict: what is wrong, if anything is, the validator says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from memstory.target import Json

Check = Callable[[Json], bool]

_SAYS_NOTHING: Final = frozenset({"$schema", "$id", "$defs", "title", "description", "examples"})
_OF_OBJECTS: Final = frozenset({"properties", "patternProperties", "additionalProperties"})
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def soundness(schema: Mapping[str, Json]) -> Check:
    """Return a function that is true only of trees that fit `schema`, which may refer to its own `$defs`.

    >>> fits = soundness({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False})
    >>> fits({"a": 1}), fits({"a": "1"}), fits({"b": 1})
    (True, False, False)

    Raises:
        ValueError: a keyword that this module does not know.
    """
    return _Compiler(schema).compiled(schema)


class _Compiler:
    """Turns the parts of one schema into functions, each definition once."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._defined: dict[str, Check] = {}
        self._makers: Mapping[str, Callable[[Json], Check]] = {
            "$ref": self._reference,
            "type": _typed,
            "enum": _enumerated,
            "required": lambda names: _on(dict, lambda value: all(name in value for name in names)),
            "items": lambda schema: _each(self.compiled(schema)),
            "propertyNames": self._names,
            "pattern": _matching,
            "minimum": lambda least: _on((int, float), lambda value: value >= least),
            "maximum": lambda most: _on((int, float), lambda value: value <= most),
            "minLength": lambda least: _on(str, lambda value: len(value) >= least),
            "maxLength": lambda most: _on(str, lambda value: len(value) <= most),
            "minItems": lambda least: _on(list, lambda value: len(value) >= least),
            "minProperties": lambda least: _on(dict, lambda value: len(value) >= least),
            "maxProperties": lambda most: _on(dict, lambda value: len(value) <= most),
            "uniqueItems": lambda unique: _on(list, lambda value: not unique or _are_distinct(value)),
        }

    def compiled(self, schema: Json) -> Check:
        if isinstance(schema, bool):
            return lambda _: schema
        unknown = schema.keys() - self._makers.keys() - _SAYS_NOTHING - _OF_OBJECTS
        if unknown:
            raise ValueError(f"this keyword has no quick check yet: {', '.join(sorted(unknown))}")
        checks = [make(schema[keyword]) for keyword, make in self._makers.items() if keyword in schema]
        if not _OF_OBJECTS.isdisjoint(schema):
            checks.append(self._members(schema))
        return checks[0] if len(checks) == 1 else _together(checks)

    def _reference(self, path: str) -> Check:
        name = path.removeprefix("#/$defs/")
        if name not in self._defined:
            # Definitions refer to themselves: a step within a `parallel` is a step.
            self._defined[name] = lambda value: self._defined[name](value)  # noqa: PLW0108  (looked up when it is called)
            self._defined[name] = self.compiled(self._root["$defs"][name])
        return self._defined[name]

    def _names(self, schema: Json) -> Check:
        fits = self.compiled(schema)
        return _on(dict, lambda value: all(map(fits, value)))

    def _members(self, schema: Mapping[str, Json]) -> Check:
        named = {key: self.compiled(inner) for key, inner in schema.get("properties", {}).items()}
        others = self.compiled(schema.get("additionalProperties", True))
        patterns = [
            (re.compile(pattern).search, self.compiled(inner))
            for pattern, inner in schema.get("patternProperties", {}).items()
        ]

        def fits(value: Json) -> bool:
            for key, inner in value.items():  # noqa: SIM110  (a generator would cost more than most of the checks)
                if not named.get(key, others)(inner):
                    return False
            return True

        def fits_patterns(value: Json) -> bool:
            for key, inner in value.items():
                checks = [check for found, check in patterns if found(key)]
                if key in named:
                    checks.append(named[key])
                if not all(check(inner) for check in checks or (others,)):
                    return False
            return True

        return _on(dict, fits_patterns if patterns else fits)


def _on(kind: type | tuple[type, ...], check: Check) -> Check:
    """Return a check that has nothing against values of another kind, as JSON Schema wants it."""
    return lambda value: not isinstance(value, kind) or check(value)


def _together(checks: Sequence[Check]) -> Check:
    def fits(value: Json) -> bool:
        for check in checks:  # noqa: SIM110  (a generator would cost more than most of the checks)
            if not check(value):
                return False
        return True

    return fits


def _each(check: Check) -> Check:
    return _on(list, lambda value: all(map(check, value)))


def _typed(names: str | Sequence[str]) -> Check:
    kinds = {kind for name in ([names] if isinstance(names, str) else names) for kind in _TYPES[name]}
    return lambda value: type(value) in kinds


def _enumerated(allowed: Sequence[Json]) -> Check:
    known = {(type(value), value) for value in allowed}
    return lambda value: isinstance(value, (str, bool, int, float, type(None))) and (type(value), value) in known


def _matching(pattern: str) -> Check:
    search = re.compile(pattern).search
    return _on(str, lambda value: search(value) is not None)


def _are_distinct(values: Sequence[Json]) -> bool:
    return all(isinstance(value, (str, int, float)) for value in values) and len(set(values)) == len(values)
