"""Matchers that compare a value with another: equality, order, nearness."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from memstory.contract.target import Tree
from memstory.language.matchers.check import matcher
from memstory.language.matchers.finding import Context, Finding, difference, listed, show

_TOLERANCE = 1e-6
"""Vectors are kept as float32 by many backends: about seven digits survive."""

_COMPARABLE = {"type": ["number", "string"]}
_NUMBERS = {"type": ["number", "array"], "items": {"type": "number"}}


def is_number(value: Tree) -> bool:
    """Return whether `value` is a number; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_same(one: Tree, other: Tree) -> bool:
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


@matcher(
    "equals",
    summary="is exactly this value; 1 equals 1.0, but true is not 1",
    grammar={},
    example="{equals: 5}",
    fits=5,
    misfits=6,
)
def equals(value: Tree, wanted: Tree, _context: Context) -> Finding:
    """Judge equality, and say how structures differ."""
    holds = is_same(value, wanted)
    says = f"is {show(value)}" + ("" if holds else f", not {show(wanted)}")
    return Finding(holds=holds, says=says, expected=show(wanted), actual=show(value),
                   difference=None if holds else difference(wanted, value))  # fmt: skip


@matcher(
    "one_of",
    summary="equals one of these values",
    grammar={"type": "array", "minItems": 1},
    example="{one_of: [stored, updated]}",
    fits="updated",
    misfits="dropped",
)
def _one_of(value: Tree, allowed: Tree, _context: Context) -> Finding:
    values = several(allowed)
    holds = any(is_same(value, one) for one in values)
    says = f"is {show(value)}, {'one' if holds else 'none'} of {listed(values)}"
    return Finding(holds=holds, says=says, expected=f"one of {listed(values)}", actual=show(value))


def several(argument: Tree) -> list[Tree]:
    """Return the values of an argument that is a list, unless a saved name has put one value there."""
    return argument if isinstance(argument, list) else [argument]


@matcher(
    "approx",
    summary="is near this number, or list of numbers; within 1e-6, or {value, tolerance}",
    grammar={
        "title": "argument of approx",
        "type": ["number", "array", "object"],
        "items": {"type": "number"},
        "required": ["value", "tolerance"],
        "additionalProperties": False,
        "properties": {
            "value": {"description": "The number, or a list of them.", **_NUMBERS},
            "tolerance": {"description": "How far off it may be.", "type": "number", "minimum": 0},
        },
    },
    example="{approx: {value: 0.5, tolerance: 0.01}}",
    fits=0.495,
    misfits=0.52,
)
def _approx(value: Tree, argument: Tree, _context: Context) -> Finding:
    bounded = argument if isinstance(argument, Mapping) else {"value": argument, "tolerance": _TOLERANCE}
    wanted, tolerance = bounded["value"], bounded["tolerance"]
    holds = _near(value, wanted, tolerance)
    says = f"is {show(value)}, {'within' if holds else 'not within'} {tolerance:g} of {show(wanted)}"
    return Finding(holds=holds, says=says, expected=f"{show(wanted)} ± {tolerance:g}", actual=show(value))


def _near(value: Tree, wanted: Tree, tolerance: float) -> bool:
    if isinstance(wanted, list):
        if not isinstance(value, list) or len(value) != len(wanted):
            return False
        return all(_near(one, other, tolerance) for one, other in zip(value, wanted, strict=True))
    return is_number(value) and is_number(wanted) and bool(abs(value - wanted) <= tolerance)


def _ordering(name: str, sign: str, holds_between: Callable[[Any, Any], bool], summary: str, bound: int) -> None:
    fits, misfits = (bound + 0.5, bound - 0.5) if sign in ">≥" else (bound - 0.5, bound + 0.5)

    @matcher(name, summary=summary, grammar=_COMPARABLE, example=f"{{{name}: {bound}}}", fits=fits, misfits=misfits)
    def _compare(value: Tree, bound: Tree, _context: Context) -> Finding:
        comparable = (is_number(value) and is_number(bound)) or (isinstance(value, str) and isinstance(bound, str))
        holds = comparable and holds_between(value, bound)
        says = f"is {show(value)}" + (f" {sign} {show(bound)}" if holds else f", which is not {sign} {show(bound)}")
        return Finding(holds=holds, says=says, expected=f"{sign} {show(bound)}", actual=show(value))


_ordering("gt", ">", operator.gt, "is greater", 0)
_ordering("ge", "≥", operator.ge, "is greater or equal", 1)
_ordering("lt", "<", operator.lt, "is less", 1)
_ordering("le", "≤", operator.le, "is less or equal", 1)
