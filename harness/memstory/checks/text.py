"""Matchers of texts, some of which speak of lists and mappings too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from memstory.checks.data import is_same
from memstory.checks.finding import Context, Finding, listed, show
from memstory.checks.matching import check, joined, together
from memstory.story import Matcher
from memstory.target import Json

_LONGEST_SEARCHED = 50_000
"""Characters of a text that a regular expression looks at: a limit on what a slow pattern can cost."""


def _has(value: Json, part: Json) -> bool:
    if isinstance(value, str):
        return str(part) in value
    if isinstance(value, Mapping):
        return part in value
    return isinstance(value, list) and any(is_same(element, part) for element in value)


def _folded(value: Json) -> Json:
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, Mapping):
        return {key.casefold(): None for key in value}
    return [_folded(element) for element in value] if isinstance(value, list) else value


def _found(value: Json, said: str, *, holds: bool, wanted: str | None = None) -> Finding:
    says = f"contains {said}" if holds else f"does not contain {said}; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"contains {wanted or said}", actual=show(value))


@check("contains")
def _contains(value: Json, part: Json, _context: Context) -> Finding:
    return _found(value, show(part), holds=_has(value, part))


@check("icontains")
def _icontains(value: Json, part: str, _context: Context) -> Finding:
    return _found(value, f"{show(part)} in any case", holds=_has(_folded(value), part.casefold()))


@check("contains_all")
def _contains_all(value: Json, parts: Sequence[Json], _context: Context) -> Finding:
    missing = [part for part in parts if not _has(value, part)]
    return _found(value, listed(missing or parts), holds=not missing, wanted=f"all of {listed(parts)}")


@check("contains_any")
def _contains_any(value: Json, parts: Sequence[Json], _context: Context) -> Finding:
    present = [part for part in parts if _has(value, part)]
    said = listed(present) if present else f"any of {listed(parts)}"
    return _found(value, said, holds=bool(present), wanted=f"any of {listed(parts)}")


@check("starts_with")
def _starts_with(value: Json, start: str, _context: Context) -> Finding:
    holds = isinstance(value, str) and value.startswith(start)
    says = f"starts with {show(start)}" if holds else f"does not start with {show(start)}; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"starts with {show(start)}", actual=show(value))


@check("regex")
def _regex(value: Json, pattern: str, _context: Context) -> Finding:
    holds = isinstance(value, str) and re.search(pattern, value[:_LONGEST_SEARCHED]) is not None
    says = f"matches /{pattern}/" if holds else f"does not match /{pattern}/; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"matches /{pattern}/", actual=show(value))


@check("occurs")
def _occurs(value: Json, wanted: Mapping[str, Sequence[Matcher]], context: Context) -> Finding:
    count = _counter(value)
    findings = []
    for text, group in wanted.items():
        times = together(count(text), group, context)
        says = f"has {show(text)} {count(text)} times, a number that {times.says}"
        findings.append(Finding(holds=times.holds, says=says, expected=times.expected, actual=show(value)))
    return joined(findings)


def _counter(value: Json) -> Callable[[str], int]:
    if isinstance(value, (str, list)):
        return value.count
    return lambda _text: 0
