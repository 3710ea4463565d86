"""Matchers by name, and the judging of a value by a group of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from memstory.language.matchers.finding import Context, Finding
from memstory.language.references import REFERENCE, written
from memstory.language.story import CallPattern, Matcher
from memstory.target import Json

Check: TypeAlias = Callable[[Json, Any, Context], Finding]
"""(actual value, argument of the matcher, context) -> finding."""

_CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Enter a check under the matcher's name; a name can be taken once."""

    def enter(function: Check) -> Check:
        if name in _CHECKS:
            raise ValueError(f"two checks are named '{name}'")
        _CHECKS[name] = function
        return function

    return enter


def known_checks() -> frozenset[str]:
    """Return the names of all matchers that can be judged."""
    return frozenset(_CHECKS)


def judged(value: Json, matcher: Matcher, context: Context) -> Finding:
    """Judge one matcher on `value`."""
    return _CHECKS[matcher.name](value, matcher.argument, context)


def together(value: Json, group: Sequence[Matcher], context: Context) -> Finding:
    """Judge a group, all of which must hold; the finding speaks of what decides it."""
    return joined([judged(value, matcher, context) for matcher in group])


def joined(findings: Sequence[Finding]) -> Finding:
    """Return one finding for several that must all hold: the failing ones, or else all of them."""
    failing = [finding for finding in findings if not finding.holds]
    deciding = failing or findings
    only = deciding[0] if len(deciding) == 1 else None
    return Finding(
        holds=not failing,
        says=" and ".join(finding.says for finding in deciding),
        expected=only.expected if only else None,
        actual=deciding[0].actual if deciding else None,
        difference=only.difference if only else None,
    )


def negated(finding: Finding) -> Finding:
    """Return the finding that holds where `finding` does not."""
    says = f"{finding.says}, which must not be so" if finding.holds else finding.says
    return Finding(holds=not finding.holds, says=says, expected=finding.expected and f"not {finding.expected}",
                   actual=finding.actual)  # fmt: skip


def resolved(argument: Any, names: Mapping[str, Json]) -> Any:
    """Return a matcher, or anything within one, with every `${name}` replaced by what was saved."""
    if isinstance(argument, str):
        return _named(argument, names) if "${" in argument else argument
    if isinstance(argument, Matcher):
        return replace(argument, argument=resolved(argument.argument, names))
    if isinstance(argument, CallPattern):
        return replace(argument, args=resolved(argument.args, names))
    if isinstance(argument, Mapping):
        return {key: resolved(inner, names) for key, inner in argument.items()}
    if isinstance(argument, (list, tuple)):
        return type(argument)(resolved(inner, names) for inner in argument)
    return argument


def _named(text: str, names: Mapping[str, Json]) -> Json:
    whole = REFERENCE.fullmatch(text)
    if whole and whole[1] in names:
        return names[whole[1]]
    return written(text, lambda name: names.get(name, f"${{{name}}}"))
