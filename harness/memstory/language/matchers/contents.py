"""Matchers of equality, order, nearness, and of what a text, list or mapping contains."""

from __future__ import annotations

import json
import operator
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from memstory.contract.errors import MissingValue
from memstory.contract.target import Tree
from memstory.language.matchers.check import (
    NUMBER,
    VALUE,
    Context,
    Finding,
    Group,
    UndecidableError,
    enumeration,
    join_findings,
    judge_group,
    matcher,
    read_group,
    show,
    structure_difference,
)
from memstory.language.reading import Reading, TreePath, compile_pattern
from memstory.language.references import fill_references

_TOLERANCE = 1e-6
"""Many backends keep vectors as float32: about seven digits survive."""

_COMPARABLE = {"type": ["number", "string"]}
_NUMBERS = {"type": ["number", "array"], "items": {"type": "number"}}


def is_number(value: Tree) -> bool:
    """Return whether `value` is a number, which true and false are not."""
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
    """Return whether `value` equals `wanted`, with the difference of lists and mappings."""
    holds = is_same(value, wanted)
    says = f"is {show(value)}" + ("" if holds else f", not {show(wanted)}")
    return Finding(holds=holds, says=says, expected=show(wanted), actual=show(value),
                   difference=None if holds else structure_difference(wanted, value))  # fmt: skip


@matcher(
    "one_of",
    summary="equals one of these values",
    grammar={"type": "array", "minItems": 1},
    example="{one_of: [stored, updated]}",
    fits="updated",
    misfits="dropped",
)
def _one_of(value: Tree, allowed: Tree, _context: Context) -> Finding:
    values = values_of_list(allowed)
    holds = any(is_same(value, one) for one in values)
    says = f"is {show(value)}, {'one' if holds else 'none'} of {enumeration(values)}"
    return Finding(holds=holds, says=says, expected=f"one of {enumeration(values)}", actual=show(value))


def values_of_list(argument: Tree) -> list[Tree]:
    """Return the argument as a list, also where a saved name has put a single value there."""
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


Counts: TypeAlias = tuple[tuple[str | Group, Group], ...]

_LONG = 10_000
"""Characters beyond which a pattern is searched for in another process: only that can be stopped."""

_SECONDS = 20.0
_SEARCH: Final = "import json, re, sys; print(re.search(*json.load(sys.stdin)) is not None)"

_UNLIKE = ("", "\n", "tea", "7 %", "\u00c4\u0416\u6f22")
"""A pattern that matches in all of these matches in every text."""

_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*(?<!\\)[+*}](?:[^()\\]|\\.)*\)[+*{]")
_SOME = {"type": "array", "minItems": 1, "items": {"minLength": 1}}
_TEXT = {"type": "string", "minLength": 1}
_PART = {"type": ["string", "number"], "minLength": 1}


def _non_empty(part: Tree) -> Tree:
    """Return `part`; raise MissingValue if a saved name has left it empty, since every text contains that."""
    if part in ("", []):
        raise MissingValue("nothing was saved of what is looked for")
    return part


def _has(value: Tree, part: Tree) -> bool:
    if isinstance(value, str):
        return str(part) in value
    if isinstance(value, Mapping):
        return isinstance(part, str) and part in value
    return isinstance(value, list) and any(is_same(element, part) for element in value)


def _parts(argument: Tree) -> list[Tree]:
    return [_non_empty(part) for part in values_of_list(_non_empty(argument))]


def _fold_case(value: Tree) -> Tree:
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, Mapping):
        return {key.casefold(): None for key in value}
    return [_fold_case(element) for element in value] if isinstance(value, list) else value


def _finding(value: Tree, said: str, *, holds: bool, wanted: str | None = None) -> Finding:
    says = f"contains {said}" if holds else f"does not contain {said}; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"contains {wanted or said}", actual=show(value))


@matcher(
    "contains",
    summary="text: has this substring; list: has this element; mapping: has this key",
    grammar={"type": ["string", "number", "boolean"], "minLength": 1},
    example="{contains: tea}",
    fits="green tea",
    misfits="coffee",
)
def _contains(value: Tree, part: Tree, _context: Context) -> Finding:
    return _finding(value, show(part), holds=_has(value, _non_empty(part)))


@matcher(
    "icontains",
    summary="contains, ignoring case",
    grammar=_PART,
    example="{icontains: tea}",
    fits="Tea",
    misfits="coffee",
)
def _icontains(value: Tree, part: Tree, _context: Context) -> Finding:
    return _finding(value, f"{show(part)} in any case", holds=_has(_fold_case(value), _fold_case(_non_empty(part))))


@matcher(
    "contains_all",
    summary="contains each of these",
    grammar=_SOME,
    example="{contains_all: [tea, milk]}",
    fits="tea with milk",
    misfits="tea",
)
def _contains_all(value: Tree, argument: Tree, _context: Context) -> Finding:
    parts = _parts(argument)
    missing = [part for part in parts if not _has(value, part)]
    return _finding(value, enumeration(missing or parts), holds=not missing, wanted=f"all of {enumeration(parts)}")


@matcher(
    "contains_any",
    summary="contains at least one of these",
    grammar=_SOME,
    example="{contains_any: [tea, coffee]}",
    fits=["coffee"],
    misfits=["juice"],
)
def _contains_any(value: Tree, argument: Tree, _context: Context) -> Finding:
    parts = _parts(argument)
    present = [part for part in parts if _has(value, part)]
    said = enumeration(present) if present else f"any of {enumeration(parts)}"
    return _finding(value, said, holds=bool(present), wanted=f"any of {enumeration(parts)}")


def _edge(verb: str, synonym: str, is_at: Callable[[str, str], bool], *, part: str, fits: str, misfits: str) -> None:
    @matcher(
        f"{verb}s_with",
        summary=f"text: {synonym}s with this",
        grammar=_PART,
        example=f"{{{verb}s_with: {part}}}",
        fits=fits,
        misfits=misfits,
    )
    def _is_at(value: Tree, part: Tree, _context: Context) -> Finding:
        # A saved name may have put a number here.
        holds = isinstance(value, str) and is_at(value, str(_non_empty(part)))
        wanted = f"{verb}s with {show(part)}"
        says = wanted if holds else f"does not {verb} with {show(part)}; it is {show(value)}"
        return Finding(holds=holds, says=says, expected=wanted, actual=show(value))


_edge("start", "begin", str.startswith, part="No", fits="No ferry today", misfits="There is no ferry")
_edge("end", "end", str.endswith, part="today", fits="No ferry today", misfits="Today there is no ferry")


def _read_pattern(reading: Reading, pattern: str, path: TreePath) -> str:
    try:
        found = compile_pattern(fill_references(pattern, lambda _: "x"))
    except ValueError as error:
        reading.fault(path, str(error))
        return pattern
    if all(map(found.search, _UNLIKE)):
        reading.fault(path, f"'{pattern:.60}' is found in every text; for any text write {{type: text}}")
    if _NESTED_REPEAT.search(pattern):
        reading.fault(path, f"'{pattern:.60}' repeats a group that repeats, which can take forever on a long text; "
                      "write it with one repetition")  # fmt: skip
    return pattern


@matcher(
    "regex",
    summary="text: the pattern matches somewhere in it; a search of a long text that takes more than 20 s fails",
    grammar={**_TEXT, "maxLength": 500},
    read=_read_pattern,
    example=r"{regex: '\d+ minutes'}",
    fits="in 10 minutes",
    misfits="in ten minutes",
)
def _regex(value: Tree, pattern: Tree, _context: Context) -> Finding:
    try:
        sought = compile_pattern(str(_non_empty(pattern)))
    except ValueError as error:
        # Only what a saved name put into the pattern can break it now: as written, it was compiled before.
        raise UndecidableError(f"the pattern cannot be used: {error}") from error
    holds = isinstance(value, str) and _is_match(sought, value)
    says = f"matches /{pattern}/" if holds else f"does not match /{pattern}/; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"matches /{pattern}/", actual=show(value))


def _is_match(pattern: re.Pattern[str], text: str) -> bool:
    if len(text) <= _LONG:
        return pattern.search(text) is not None
    try:
        done = subprocess.run(  # noqa: S603  (our own line, by this Python)
            [sys.executable, "-I", "-S", "-c", _SEARCH],
            input=json.dumps([pattern.pattern, text]).encode(),
            stdout=subprocess.PIPE,
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise UndecidableError(
            f"the text of {len(text):,} characters is longer than can be searched for /{pattern.pattern}/ in "
            f"{_SECONDS:g} s; write a pattern with fewer repetitions"
        ) from error
    return done.stdout.strip() == b"True"


def _read_counts(reading: Reading, argument: Mapping[str, Tree], path: TreePath) -> Counts:
    if argument.keys() != {"of", "times"}:
        if isinstance(argument.get("of"), dict):
            reading.fault(path, "'occurs' needs 'times' beside 'of', and nothing else", at_key=True)
        return tuple((text, read_group(reading, times, (*path, text))) for text, times in argument.items())
    of, times = argument["of"], read_group(reading, argument["times"], (*path, "times"))
    return ((of if isinstance(of, str) else read_group(reading, of, (*path, "of")), times),)


@matcher(
    "occurs",
    summary="how often: {text: times}, or {of: matchers on an element, times: times}; times may be matchers",
    grammar={
        "type": "object",
        "minProperties": 1,
        "additionalProperties": NUMBER,
        "properties": {
            "of": {"description": "What is counted: a text, or matchers on elements.", **VALUE},
            "times": {"description": "How often.", **NUMBER},
        },
    },
    read=_read_counts,
    example="{occurs: {tea: 2}}",
    fits="tea and more tea",
    misfits="tea",
)
def _occurs(value: Tree, pairs: Counts, context: Context) -> Finding:
    findings = []
    for what, times in pairs:
        count = _occurrences(value, what, context)
        found = judge_group(count, times, context)
        said = show(what) if isinstance(what, str) else "what is counted"
        says = f"has {said} {count} times, a number that {found.says}"
        findings.append(Finding(holds=found.holds, says=says, expected=found.expected, actual=show(value)))
    return join_findings(findings)


def _occurrences(value: Tree, what: str | Group, context: Context) -> int:
    """Count a text within a text, or the elements of a list that are `what` or fit it."""
    if isinstance(what, str):
        return value.count(_non_empty(what)) if isinstance(value, (str, list)) else 0
    elements = value if isinstance(value, list) else [value]
    return sum(judge_group(element, what, context).holds for element in elements)
