"""Matchers of texts, some of which speak of lists and mappings too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memstory.language.matchers.finding import Context, Finding, listed, show
from memstory.language.matchers.matching import check, joined, together
from memstory.language.matchers.structures import is_same
from memstory.language.story import Matcher
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
def _icontains(value: Json, part: Json, _context: Context) -> Finding:
    return _found(value, f"{show(part)} in any case", holds=_has(_folded(value), _folded(part)))


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
def _starts_with(value: Json, start: Json, _context: Context) -> Finding:
    # A saved name may have put a number here.
    holds = isinstance(value, str) and value.startswith(str(start))
    says = f"starts with {show(start)}" if holds else f"does not start with {show(start)}; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"starts with {show(start)}", actual=show(value))


@check("regex")
def _regex(value: Json, pattern: Json, _context: Context) -> Finding:
    try:
        holds = isinstance(value, str) and re.search(str(pattern), value[:_LONGEST_SEARCHED]) is not None
    except re.error as error:
        # Only what a saved name put into the pattern can break it now: as written, it was compiled before.
        return Finding(holds=False, says=f"cannot be held against /{pattern}/: {error}", actual=show(value))
    says = f"matches /{pattern}/" if holds else f"does not match /{pattern}/; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"matches /{pattern}/", actual=show(value))


@check("occurs")
def _occurs(
    value: Json, pairs: Sequence[tuple[str | Sequence[Matcher], Sequence[Matcher]]], context: Context
) -> Finding:
    findings = []
    for what, times in pairs:
        count = _occurrences(value, what, context)
        found = together(count, times, context)
        said = show(what) if isinstance(what, str) else "what is counted"
        says = f"has {said} {count} times, a number that {found.says}"
        findings.append(Finding(holds=found.holds, says=says, expected=found.expected, actual=show(value)))
    return joined(findings)


def _occurrences(value: Json, what: str | Sequence[Matcher], context: Context) -> int:
    """Count a text within a text, or the elements of a list that are `what` or fit it."""
    if isinstance(what, str):
        return value.count(what) if isinstance(value, (str, list)) else 0
    elements = value if isinstance(value, list) else [value]
    return sum(together(element, what, context).holds for element in elements)
