"""Matchers of what a text contains, some of which also work on lists and mappings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, TypeAlias

from memstory.contract.errors import MissingValue
from memstory.contract.target import Tree
from memstory.language.matchers.check import Group, joined, matcher, together
from memstory.language.matchers.finding import Context, Finding, Undecided, listed, show
from memstory.language.matchers.groups import NUMBER, VALUE, group
from memstory.language.matchers.numbers import is_same, several
from memstory.language.reading import Reading, TreePath, compiled
from memstory.language.references import written

Counted: TypeAlias = tuple[tuple[str | Group, Group], ...]

_LONG = 10_000
"""Characters beyond which a pattern is searched for in another process: only that can be stopped."""

_SECONDS = 20.0
_SEARCH: Final = "import json, re, sys; print(re.search(*json.load(sys.stdin)) is not None)"

_UNLIKE = ("", "\n", "tea", "7 %", "\u00c4\u0416\u6f22")
"""What finds something in all of these does so in any text."""

_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*(?<!\\)[+*}](?:[^()\\]|\\.)*\)[+*{]")
_SOME = {"type": "array", "minItems": 1, "items": {"minLength": 1}}
_TEXT = {"type": "string", "minLength": 1}
_PART = {"type": ["string", "number"], "minLength": 1}


def _sought(part: Tree) -> Tree:
    """Return what is looked for; MissingValue if a saved name left nothing of it, which every text would have."""
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
    return [_sought(part) for part in several(_sought(argument))]


def _folded(value: Tree) -> Tree:
    if isinstance(value, str):
        return value.casefold()
    if isinstance(value, Mapping):
        return {key.casefold(): None for key in value}
    return [_folded(element) for element in value] if isinstance(value, list) else value


def _found(value: Tree, said: str, *, holds: bool, wanted: str | None = None) -> Finding:
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
    return _found(value, show(part), holds=_has(value, _sought(part)))


@matcher(
    "icontains",
    summary="contains, ignoring case",
    grammar=_PART,
    example="{icontains: tea}",
    fits="Tea",
    misfits="coffee",
)
def _icontains(value: Tree, part: Tree, _context: Context) -> Finding:
    return _found(value, f"{show(part)} in any case", holds=_has(_folded(value), _folded(_sought(part))))


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
    return _found(value, listed(missing or parts), holds=not missing, wanted=f"all of {listed(parts)}")


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
    said = listed(present) if present else f"any of {listed(parts)}"
    return _found(value, said, holds=bool(present), wanted=f"any of {listed(parts)}")


@matcher(
    "starts_with",
    summary="text: begins with this",
    grammar=_PART,
    example="{starts_with: No}",
    fits="No ferry today",
    misfits="There is no ferry",
)
def _starts_with(value: Tree, start: Tree, _context: Context) -> Finding:
    # A saved name may have put a number here.
    holds = isinstance(value, str) and value.startswith(str(_sought(start)))
    says = f"starts with {show(start)}" if holds else f"does not start with {show(start)}; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"starts with {show(start)}", actual=show(value))


def _pattern(reading: Reading, pattern: str, path: TreePath) -> str:
    try:
        found = compiled(written(pattern, lambda _: "x"))
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
    read=_pattern,
    example=r"{regex: '\d+ minutes'}",
    fits="in 10 minutes",
    misfits="in ten minutes",
)
def _regex(value: Tree, pattern: Tree, _context: Context) -> Finding:
    try:
        sought = compiled(str(_sought(pattern)))
    except ValueError as error:
        # Only what a saved name put into the pattern can break it now: as written, it was compiled before.
        raise Undecided(f"the pattern cannot be used: {error}") from error
    holds = isinstance(value, str) and _is_found(sought, value)
    says = f"matches /{pattern}/" if holds else f"does not match /{pattern}/; it is {show(value)}"
    return Finding(holds=holds, says=says, expected=f"matches /{pattern}/", actual=show(value))


def _is_found(pattern: re.Pattern[str], text: str) -> bool:
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
        raise Undecided(
            f"the text of {len(text):,} characters is longer than can be searched for /{pattern.pattern}/ in "
            f"{_SECONDS:g} s; write a pattern with fewer repetitions"
        ) from error
    return done.stdout.strip() == b"True"


def _counted(reading: Reading, argument: Mapping[str, Tree], path: TreePath) -> Counted:
    if argument.keys() != {"of", "times"}:
        if isinstance(argument.get("of"), dict):
            reading.fault(path, "'occurs' needs 'times' beside 'of', and nothing else", at_key=True)
        return tuple((text, group(reading, times, (*path, text))) for text, times in argument.items())
    of, times = argument["of"], group(reading, argument["times"], (*path, "times"))
    return ((of if isinstance(of, str) else group(reading, of, (*path, "of")), times),)


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
    read=_counted,
    example="{occurs: {tea: 2}}",
    fits="tea and more tea",
    misfits="tea",
)
def _occurs(value: Tree, pairs: Counted, context: Context) -> Finding:
    findings = []
    for what, times in pairs:
        count = _occurrences(value, what, context)
        found = together(count, times, context)
        said = show(what) if isinstance(what, str) else "what is counted"
        says = f"has {said} {count} times, a number that {found.says}"
        findings.append(Finding(holds=found.holds, says=says, expected=found.expected, actual=show(value)))
    return joined(findings)


def _occurrences(value: Tree, what: str | Group, context: Context) -> int:
    """Count a text within a text, or the elements of a list that are `what` or fit it."""
    if isinstance(what, str):
        return value.count(_sought(what)) if isinstance(value, (str, list)) else 0
    elements = value if isinstance(value, list) else [value]
    return sum(together(element, what, context).holds for element in elements)
