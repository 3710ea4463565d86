"""The checks of the tool calls of a turn, each call {name, args}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from memstory.contract.target import Tree
from memstory.language.matchers.check import (
    NUMBER,
    VALUE,
    Check,
    CheckDecorator,
    Context,
    Finding,
    Group,
    assign_places,
    join_findings,
    judge_group,
    negate,
    read_checks,
    read_group,
    read_groups,
    show,
)
from memstory.language.reading import Reading, TreePath
from memstory.language.registry import Registry
from memstory.language.story import CallPattern, Matcher

Calls: TypeAlias = Sequence[Mapping[str, Tree]]

CALL_CHECKS: Registry[Check] = Registry("check of tool calls")
call_check = CheckDecorator(CALL_CHECKS)

_CALL_SHAPE = {
    "title": "tool call",
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": {"title": "arguments", "type": ["object", "null"], "additionalProperties": VALUE},
}
CALL = {"type": ["string", "object"], "minLength": 1, **_CALL_SHAPE}
"""Grammar of one call: a tool's name, or {name: {argument: matcher}}."""

_CALLS = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/call"}}


def read_call_checks(reading: Reading, checks: Tree, path: TreePath) -> Group:
    """Return the checks of `tool_calls:`; a plain list means `in_order`, an empty one `none`."""
    if not isinstance(checks, list):
        return read_checks(CALL_CHECKS, reading, checks, path)
    if not checks:
        return (Matcher(name="none", argument=True, mark=reading.mark(path)),)
    return (Matcher(name="in_order", argument=_read_calls(reading, checks, path), mark=reading.mark(path)),)


def _read_calls(reading: Reading, calls: list[Tree], path: TreePath) -> tuple[CallPattern, ...]:
    return tuple(_read_call(reading, call, (*path, index)) for index, call in enumerate(calls))


def _read_call(reading: Reading, call: Tree, path: TreePath) -> CallPattern:
    if isinstance(call, str):
        return CallPattern(name=call, args={}, mark=reading.mark(path))
    ((name, args),) = call.items()
    return CallPattern(name=name, args=read_groups(reading, args or {}, (*path, name)), mark=reading.mark(path))


def judge_calls(calls: Calls, one: Matcher, context: Context) -> Finding:
    """Return the finding of one check on the calls of a turn, the first call first."""
    return CALL_CHECKS[one.name].judge(calls, one.argument, context)


def describe_calls(calls: Calls) -> str:
    """Return the calls for a sentence.

    >>> describe_calls([{"name": "search", "args": {"query": "tea"}}])
    "search(query='tea')"
    """
    return "; ".join(f"{call.get('name')}({_arguments(call)})" for call in calls) or "no calls"


def _arguments(call: Mapping[str, Tree]) -> str:
    return ", ".join(f"{name}={show(value, 80)}" for name, value in (call.get("args") or {}).items())


def _pattern_text(pattern: CallPattern) -> str:
    args = ", ".join(_argument_text(name, matchers) for name, matchers in pattern.args.items())
    return f"{pattern.name}({args})" if args else pattern.name


def _argument_text(name: str, matchers: Sequence[Matcher]) -> str:
    """Return the name of an argument, with its value if one plain matcher says it."""
    if len(matchers) != 1 or not isinstance(matchers[0].argument, (str, int, float)):
        return name
    joint = "=" if matchers[0].name == "equals" else f" {matchers[0].name} "
    return f"{name}{joint}{show(matchers[0].argument, 80)}"


def _mismatch(call: Mapping[str, Tree], pattern: CallPattern, context: Context) -> str | None:
    """Return why `call` does not fit, or None if it does."""
    if call.get("name") != pattern.name:
        return f"it is {call.get('name')}"
    args = call.get("args") or {}
    for name, matchers in pattern.args.items():
        if name not in args:
            return f"it has no argument '{name}'"
        found = judge_group(args[name], matchers, context)
        if not found.holds:
            return f"'{name}' {found.says}"
    return None


def _missing_text(calls: Calls, pattern: CallPattern, context: Context) -> str:
    near = [_mismatch(call, pattern, context) for call in calls if call.get("name") == pattern.name]
    reasons = [reason for reason in near if reason]
    return f"{pattern.name} was called, but {reasons[-1]}" if reasons else f"{pattern.name} was not called"


def _finding(calls: Calls, says: str, *, holds: bool, patterns: Sequence[CallPattern]) -> Finding:
    actual = describe_calls(calls)
    return Finding(holds=holds, says=says if holds else f"{says}; what happened: {actual}",
                   expected=", ".join(map(_pattern_text, patterns)) or "no calls", actual=actual)  # fmt: skip


@call_check(
    "in_order",
    grammar=_CALLS,
    read=_read_calls,
    summary="these calls happened in this order; others can be in between (a plain list means this)",
    example="[recall_topic, {save_topic: {topic: user.name}}]",
)
def _in_order(calls: Calls, patterns: Sequence[CallPattern], context: Context) -> Finding:
    place = 0
    for pattern in patterns:
        found = next((n for n in range(place, len(calls)) if _mismatch(calls[n], pattern, context) is None), None)
        if found is None:
            earlier = any(_mismatch(call, pattern, context) is None for call in calls[:place])
            says = f"are in another order: {_pattern_text(pattern)} came too early" if earlier else (
                f"do not fit: {_missing_text(calls, pattern, context)}")  # fmt: skip
            return _finding(calls, says, holds=False, patterns=patterns)
        place = found + 1
    return _finding(calls, f"are {describe_calls(calls)}", holds=True, patterns=patterns)


@call_check(
    "any_order",
    summary="these calls happened, in any order",
    grammar=_CALLS,
    read=_read_calls,
    example="{any_order: [recall_topic, save_topic]}",
)
def _any_order(calls: Calls, patterns: Sequence[CallPattern], context: Context) -> Finding:
    fits = [[n for n, call in enumerate(calls) if _mismatch(call, pattern, context) is None] for pattern in patterns]
    for pattern, places in zip(patterns, fits, strict=True):
        if not places:
            return _finding(
                calls, f"do not fit: {_missing_text(calls, pattern, context)}", holds=False, patterns=patterns
            )
    if len(assign_places(fits)) < len(patterns):
        return _finding(calls, "are too few: one call cannot stand for two", holds=False, patterns=patterns)
    return _finding(calls, f"are {describe_calls(calls)}", holds=True, patterns=patterns)


@call_check(
    "only",
    summary="exactly these calls happened, in this order",
    grammar=_CALLS,
    read=_read_calls,
    example="{only: [{recall_topic: {topic: {starts_with: user.}}}]}",
)
def _only(calls: Calls, patterns: Sequence[CallPattern], context: Context) -> Finding:
    if len(calls) != len(patterns):
        return _finding(calls, f"are {len(calls)}, not {len(patterns)}", holds=False, patterns=patterns)
    for number, (call, pattern) in enumerate(zip(calls, patterns, strict=True), 1):
        why = _mismatch(call, pattern, context)
        if why is not None:
            says = f"do not fit: call {number} should be {_pattern_text(pattern)}, but {why}"
            return _finding(calls, says, holds=False, patterns=patterns)
    return _finding(calls, f"are {describe_calls(calls)}", holds=True, patterns=patterns)


def _read_none(reading: Reading, argument: Tree, path: TreePath) -> Tree:
    if argument is False:
        reading.fault(path, "'none: false' says nothing; write {count: {ge: 1}}, or leave it out")
    return (argument,) if isinstance(argument, str) else argument if isinstance(argument, bool) else tuple(argument)


@call_check(
    "none",
    summary="`true`: no call happened; names: none of these tools was called",
    read=_read_none,
    grammar={"type": ["boolean", "string", "array"], "minItems": 1, "items": {"type": "string"}},
    example="{none: [save_topic]}",
)
def _none(calls: Calls, names: Any, _context: Context) -> Finding:
    called = [call for call in calls if names is True or call.get("name") in names]
    says = (
        f"include {describe_calls(called)}"
        if called
        else "are none"
        if names is True
        else f"are without {', '.join(names)}"
    )
    expected = "no calls" if names is True else f"no calls of {', '.join(names)}"
    return Finding(holds=not called, says=says, expected=expected, actual=describe_calls(calls))


def _read_alternatives(reading: Reading, argument: list[Tree], path: TreePath) -> tuple[tuple[CallPattern, ...], ...]:
    return tuple(
        _read_calls(reading, one, (*path, index))
        if isinstance(one, list)
        else (_read_call(reading, one, (*path, index)),)
        for index, one in enumerate(argument)
    )


@call_check(
    "any_of",
    summary="at least one of these happened: calls, or lists of calls in order",
    grammar={"type": "array", "minItems": 1, "items": {**_CALL_SHAPE, **_CALLS, "type": ["string", "object", "array"]}},
    read=_read_alternatives,
    example="{any_of: [recall_topic, memory_recall]}",
)
def _any_of(calls: Calls, alternatives: Sequence[Sequence[CallPattern]], context: Context) -> Finding:
    findings = [_in_order(calls, patterns, context) for patterns in alternatives]
    holding = next((found for found in findings if found.holds), None)
    if holding:
        return holding
    expected = " or ".join(str(found.expected) for found in findings)
    return Finding(holds=False, says=f"fit no alternative ({expected}); what happened: {describe_calls(calls)}",
                   expected=expected, actual=describe_calls(calls))  # fmt: skip


@call_check(
    "count", summary="how many calls: a number or matchers", grammar=NUMBER, read=read_group, example="{count: {le: 2}}"
)
def _count(calls: Calls, wanted: Group, context: Context) -> Finding:
    found = judge_group(len(calls), wanted, context)
    return Finding(holds=found.holds, says=f"count {len(calls)}, a number that {found.says}", expected=found.expected,
                   actual=describe_calls(calls))  # fmt: skip


@call_check(
    "not",
    summary="these checks do not all hold",
    grammar={"$ref": "#/$defs/tool_calls"},
    read=read_call_checks,
    example="{not: {any_order: [save_topic]}}",
)
def _not(calls: Calls, checks: Sequence[Matcher], context: Context) -> Finding:
    return negate(join_findings([judge_calls(calls, one, context) for one in checks]))
