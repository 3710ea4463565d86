"""Checks of the tool calls of a turn, and of each call against the schema that the target announced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from jsonschema import Draft202012Validator, SchemaError

from memstory.language.matchers.finding import Context, Finding, show
from memstory.language.matchers.matching import joined, negated, together
from memstory.language.story import CallPattern, Matcher
from memstory.target import Json, ToolSchema

Calls: TypeAlias = Sequence[Mapping[str, Json]]

_MOST_COMPARED = 8
"""Beyond so many patterns in `any_order`, pairing them in every way could take long: the first fit is taken."""


def judge_calls(calls: Calls, matcher: Matcher, context: Context) -> Finding:
    """Judge one check on the calls of a turn, in the order in which they happened."""
    return _CHECKS[matcher.name](calls, matcher.argument, context)


def describe(calls: Calls) -> str:
    """Return the calls for a person.

    >>> describe([{"name": "search", "args": {"query": "tea"}}])
    "search(query='tea')"
    """
    return "; ".join(f"{call.get('name')}({_arguments(call)})" for call in calls) or "no calls"


def _arguments(call: Mapping[str, Json]) -> str:
    return ", ".join(f"{name}={show(value, 80)}" for name, value in (call.get("args") or {}).items())


def violations_of_schema(calls: Calls, announced: Sequence[ToolSchema]) -> Iterator[str]:
    """Yield what each call violates of the schema of its tool; where nothing was announced, nothing is said."""
    schemas = {tool.name: tool.parameters for tool in announced}
    for call in calls if schemas else ():
        name = call.get("name")
        if name not in schemas:
            yield f"'{name}' was called, but only {', '.join(sorted(schemas))} were announced"
            continue
        for error in Draft202012Validator(schemas[name]).iter_errors(call.get("args") or {}):
            place = ".".join(map(str, error.absolute_path))
            yield f"'{name}' was called against its schema: {f'{place}: ' if place else ''}{error.message:.160}"


def faulty_schemas(tools: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the announced tools whose parameters are no JSON Schema."""
    for tool in tools:
        try:
            Draft202012Validator.check_schema(tool.get("parameters") or {})
        except SchemaError as error:
            yield f"'{tool.get('name')}' was announced with parameters that are no JSON Schema: {error.message:.160}"


def _said(pattern: CallPattern) -> str:
    args = ", ".join(_wanted(name, group) for name, group in pattern.args.items())
    return f"{pattern.name}({args})" if args else pattern.name


def _wanted(name: str, group: Sequence[Matcher]) -> str:
    """Return what an argument must be, where one plain value says it; else only that there must be one."""
    if len(group) != 1 or not isinstance(group[0].argument, (str, int, float)):
        return name
    joint = "=" if group[0].name == "equals" else f" {group[0].name} "
    return f"{name}{joint}{show(group[0].argument, 80)}"


def _why_not(call: Mapping[str, Json], pattern: CallPattern, context: Context) -> str | None:
    """Return what keeps `call` from fitting, or None if it fits."""
    if call.get("name") != pattern.name:
        return f"it is {call.get('name')}"
    args = call.get("args") or {}
    for name, group in pattern.args.items():
        if name not in args:
            return f"it has no argument '{name}'"
        found = together(args[name], group, context)
        if not found.holds:
            return f"'{name}' {found.says}"
    return None


def _missing(calls: Calls, pattern: CallPattern, context: Context) -> str:
    near = [_why_not(call, pattern, context) for call in calls if call.get("name") == pattern.name]
    reasons = [reason for reason in near if reason]
    return f"{pattern.name} was called, but {reasons[-1]}" if reasons else f"{pattern.name} was not called"


def _finding(calls: Calls, says: str, *, holds: bool, patterns: Sequence[CallPattern]) -> Finding:
    actual = describe(calls)
    return Finding(holds=holds, says=says if holds else f"{says}; what happened: {actual}",
                   expected=", ".join(map(_said, patterns)) or "no calls", actual=actual)  # fmt: skip


def _in_order(calls: Calls, patterns: Sequence[CallPattern], context: Context) -> Finding:
    place = 0
    for pattern in patterns:
        found = next((n for n in range(place, len(calls)) if _why_not(calls[n], pattern, context) is None), None)
        if found is None:
            earlier = any(_why_not(call, pattern, context) is None for call in calls[:place])
            says = f"are in another order: {_said(pattern)} came too early" if earlier else (
                f"do not fit: {_missing(calls, pattern, context)}")  # fmt: skip
            return _finding(calls, says, holds=False, patterns=patterns)
        place = found + 1
    return _finding(calls, f"are {describe(calls)}", holds=True, patterns=patterns)


def _any_order(calls: Calls, patterns: Sequence[CallPattern], context: Context) -> Finding:
    fits = [{n for n, call in enumerate(calls) if _why_not(call, pattern, context) is None} for pattern in patterns]
    for pattern, places in zip(patterns, fits, strict=True):
        if not places:
            return _finding(calls, f"do not fit: {_missing(calls, pattern, context)}", holds=False, patterns=patterns)
    if not _paired(sorted(fits, key=len), frozenset()):
        return _finding(calls, "are too few: one call cannot stand for two", holds=False, patterns=patterns)
    return _finding(calls, f"are {describe(calls)}", holds=True, patterns=patterns)


def _paired(fits: Sequence[set[int]], taken: frozenset[int]) -> bool:
    """Whether each pattern can have a call of its own."""
    if not fits:
        return True
    free = sorted(fits[0] - taken)
    tried = free if len(fits) <= _MOST_COMPARED else free[:1]
    return any(_paired(fits[1:], taken | {place}) for place in tried)


def _only(calls: Calls, patterns: Sequence[CallPattern], context: Context) -> Finding:
    if len(calls) != len(patterns):
        return _finding(calls, f"are {len(calls)}, not {len(patterns)}", holds=False, patterns=patterns)
    for number, (call, pattern) in enumerate(zip(calls, patterns, strict=True), 1):
        why = _why_not(call, pattern, context)
        if why is not None:
            return _finding(calls, f"do not fit: call {number} should be {_said(pattern)}, but {why}", holds=False,
                            patterns=patterns)  # fmt: skip
    return _finding(calls, f"are {describe(calls)}", holds=True, patterns=patterns)


def _none(calls: Calls, names: Any, _context: Context) -> Finding:
    called = [call for call in calls if names is True or call.get("name") in names]
    says = (
        f"include {describe(called)}" if called else "are none" if names is True else f"are without {', '.join(names)}"
    )
    expected = "no calls" if names is True else f"no calls of {', '.join(names)}"
    return Finding(holds=not called, says=says, expected=expected, actual=describe(calls))


def _any_of(calls: Calls, alternatives: Sequence[Sequence[CallPattern]], context: Context) -> Finding:
    findings = [_in_order(calls, patterns, context) for patterns in alternatives]
    holding = next((found for found in findings if found.holds), None)
    if holding:
        return holding
    expected = " or ".join(str(found.expected) for found in findings)
    return Finding(holds=False, says=f"fit no alternative ({expected}); what happened: {describe(calls)}",
                   expected=expected, actual=describe(calls))  # fmt: skip


def _count(calls: Calls, group: Sequence[Matcher], context: Context) -> Finding:
    found = together(len(calls), group, context)
    return Finding(holds=found.holds, says=f"count {len(calls)}, a number that {found.says}", expected=found.expected,
                   actual=describe(calls))  # fmt: skip


def _not(calls: Calls, checks: Sequence[Matcher], context: Context) -> Finding:
    return negated(joined([judge_calls(calls, one, context) for one in checks]))


_CHECKS: Mapping[str, Callable[[Calls, Any, Context], Finding]] = {
    "in_order": _in_order,
    "any_order": _any_order,
    "only": _only,
    "none": _none,
    "any_of": _any_of,
    "count": _count,
    "not": _not,
}
