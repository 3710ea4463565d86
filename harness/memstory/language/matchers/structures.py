"""Matchers of any JSON value, and those that hold matchers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

from memstory.language.matchers.difference import difference
from memstory.language.matchers.finding import Context, Finding, listed, show
from memstory.language.matchers.matching import check, joined, negated, together
from memstory.language.story import Matcher
from memstory.target import Json

_TOLERANCE = 1e-6
"""Vectors are kept as float32 by many backends: about seven digits survive."""


def is_number(value: Json) -> bool:
    """Return whether `value` is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: Mapping[str, Callable[[Json], bool]] = {
    "text": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "list": lambda value: isinstance(value, list),
    "mapping": lambda value: isinstance(value, Mapping),
}


def is_same(one: Json, other: Json) -> bool:
    """Return whether two JSON values are equal; 1 equals 1.0, true does not equal 1.

    >>> is_same({"a": [1]}, {"a": [1.0]}), is_same(True, 1)
    (True, False)
    """
    if is_number(one) and is_number(other):
        return bool(one == other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    return type(one) is type(other) and bool(one == other)


@check("equals")
def _equals(value: Json, wanted: Json, _context: Context) -> Finding:
    holds = is_same(value, wanted)
    says = f"is {show(value)}" + ("" if holds else f", not {show(wanted)}")
    return Finding(holds=holds, says=says, expected=show(wanted), actual=show(value),
                   difference=None if holds else difference(wanted, value))  # fmt: skip


@check("one_of")
def _one_of(value: Json, allowed: Sequence[Json], _context: Context) -> Finding:
    holds = any(is_same(value, one) for one in allowed)
    says = f"is {show(value)}, {'one' if holds else 'none'} of {listed(allowed)}"
    return Finding(holds=holds, says=says, expected=f"one of {listed(allowed)}", actual=show(value))


@check("approx")
def _approx(value: Json, argument: Json, _context: Context) -> Finding:
    bounded = argument if isinstance(argument, Mapping) else {"value": argument, "tolerance": _TOLERANCE}
    wanted, tolerance = bounded["value"], bounded["tolerance"]
    holds = _near(value, wanted, tolerance)
    says = f"is {show(value)}, {'within' if holds else 'not within'} {tolerance:g} of {show(wanted)}"
    return Finding(holds=holds, says=says, expected=f"{show(wanted)} ± {tolerance:g}", actual=show(value))


def _near(value: Json, wanted: Json, tolerance: float) -> bool:
    if isinstance(wanted, list):
        if not isinstance(value, list) or len(value) != len(wanted):
            return False
        return all(_near(one, other, tolerance) for one, other in zip(value, wanted, strict=True))
    return is_number(value) and bool(abs(value - wanted) <= tolerance)


def _ordering(name: str, sign: str, holds_between: Callable[[Any, Any], bool]) -> None:
    @check(name)
    def _compare(value: Json, bound: Json, _context: Context) -> Finding:
        comparable = (is_number(value) and is_number(bound)) or (isinstance(value, str) and isinstance(bound, str))
        holds = comparable and holds_between(value, bound)
        says = f"is {show(value)}" + (f" {sign} {show(bound)}" if holds else f", which is not {sign} {show(bound)}")
        return Finding(holds=holds, says=says, expected=f"{sign} {show(bound)}", actual=show(value))


_ordering("gt", ">", operator.gt)
_ordering("ge", "≥", operator.ge)
_ordering("lt", "<", operator.lt)
_ordering("le", "≤", operator.le)


@check("type")
def _type(value: Json, name: str, _context: Context) -> Finding:
    holds = _TYPES[name](value)
    says = f"is {'of' if holds else 'not of'} type {name}: {show(value)}"
    return Finding(holds=holds, says=says, expected=f"type {name}", actual=show(value))


@check("json_schema")
def _json_schema(value: Json, schema: Mapping[str, Json], _context: Context) -> Finding:
    faults = [
        f"{'.'.join(map(str, error.absolute_path)) or 'it'}: {error.message:.120}"
        for error in Draft202012Validator(schema).iter_errors(value)
    ]
    says = f"does not fit the JSON Schema: {'; '.join(faults[:3])}" if faults else "fits the JSON Schema"
    return Finding(holds=not faults, says=says, expected="valid by the JSON Schema", actual=show(value))


@check("length")
def _length(value: Json, group: Sequence[Matcher], context: Context) -> Finding:
    if not isinstance(value, (str, list, Mapping)):
        return Finding(holds=False, says=f"has no length: it is {show(value)}", actual=show(value))
    found = together(len(value), group, context)
    return Finding(
        holds=found.holds, says=f"has a length that {found.says}", expected=found.expected, actual=show(value)
    )


@check("fields")
def _fields(value: Json, groups: Mapping[str, Sequence[Matcher]], context: Context) -> Finding:
    if not isinstance(value, Mapping):
        return Finding(holds=False, says=f"has no fields: it is {show(value)}", expected=f"has {listed(groups)}",
                       actual=show(value))  # fmt: skip
    findings = []
    for name, group in groups.items():
        if name not in value:
            has = listed(value)
            findings.append(Finding(holds=False, says=f"has no '{name}' (it has {has})", actual=show(value)))
            continue
        found = together(value[name], group, context)
        findings.append(Finding(holds=found.holds, says=f"'{name}' {found.says}", expected=found.expected,
                                actual=found.actual, difference=found.difference))  # fmt: skip
    return joined(findings)


@check("not")
def _not(value: Json, group: Sequence[Matcher], context: Context) -> Finding:
    return negated(together(value, group, context))


def _elements(value: Json) -> list[Json] | None:
    return value if isinstance(value, list) else list(value.values()) if isinstance(value, Mapping) else None


@check("all")
def _all(value: Json, argument: Any, context: Context) -> Finding:
    if not isinstance(argument[0], Matcher):
        return joined([together(value, group, context) for group in argument])
    elements = _elements(value)
    if not elements:
        says = "has no elements of which it could hold" if elements is not None else f"is no list: {show(value)}"
        return Finding(holds=False, says=says, actual=show(value))
    findings = [together(element, argument, context) for element in elements]
    failing = [f"element {number} {found.says}" for number, found in enumerate(findings, 1) if not found.holds]
    says = "; ".join(failing[:3]) if failing else f"has {len(elements)} elements of which each {findings[0].says}"
    return Finding(holds=not failing, says=says, actual=show(value))


@check("any")
def _any(value: Json, argument: Any, context: Context) -> Finding:
    if isinstance(argument[0], Matcher):
        findings = [together(element, argument, context) for element in _elements(value) or ()]
        nothing = "has no element of which it holds"
    else:
        findings = [together(value, group, context) for group in argument]
        nothing = "fits no alternative"
    holding = next((found for found in findings if found.holds), None)
    if holding:
        return Finding(holds=True, says=holding.says, actual=show(value))
    tried = "; ".join(found.says for found in findings[:3])
    return Finding(holds=False, says=f"{nothing}: {tried or show(value)}", actual=show(value))


@check("same_as")
def _same_as(value: Json, name: str, context: Context) -> Finding:
    before, now = (inner.get("files", inner) if isinstance(inner, Mapping) else inner
                   for inner in (context.names.get(name), value))  # fmt: skip
    found = _equals(now, before, context)
    says = f"is the same as '{name}'" if found.holds else f"is not the same as '{name}'"
    return Finding(
        holds=found.holds, says=says, expected=found.expected, actual=found.actual, difference=found.difference
    )


@check("none_contain")
def _none_contain(value: Json, texts: Sequence[str], _context: Context) -> Finding:
    containing = value.get("containing", {}) if isinstance(value, Mapping) else {}
    found = [f"{show(text)} stands in {listed(containing[text])}" for text in texts if containing.get(text)]
    unsearched = [text for text in texts if text not in containing]
    if unsearched:
        found.append(f"was not searched for {listed(unsearched)}")
    says = "; ".join(found) if found else f"has {listed(texts)} in no file"
    return Finding(holds=not found, says=says, expected=f"{listed(texts)} in no file", actual="; ".join(found) or None)


@check("names")
def _names(value: Json, wanted: Sequence[str], _context: Context) -> Finding:
    names = sorted(value) if isinstance(value, Mapping) else []
    holds = names == sorted(wanted)
    says = f"are {listed(names)}" + ("" if holds else f", not {listed(sorted(wanted))}")
    return Finding(holds=holds, says=says, expected=listed(sorted(wanted)), actual=listed(names))
