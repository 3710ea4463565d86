"""A check, declared once: what a story writes, how its argument is read, and when it holds; and groups of checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from memstory.contract.errors import MissingValue
from memstory.contract.target import Capability, Tree
from memstory.language.matchers.finding import Context, Finding
from memstory.language.reading import Reading, TreePath
from memstory.language.references import REFERENCE, written
from memstory.language.registry import Registry
from memstory.language.story import CallPattern, Matcher

Schema: TypeAlias = Mapping[str, Tree]
Group: TypeAlias = tuple[Matcher, ...]
Judge: TypeAlias = Callable[[Any, Any, Context], Finding]
"""(actual value, argument of the check, context) -> finding."""

Read: TypeAlias = Callable[[Reading, Any, TreePath], object]
"""(what reading a story collects, the argument as written, its path) -> the argument as it is judged."""


def as_written(_reading: Reading, argument: Tree, _path: TreePath) -> Tree:
    """Read an argument that is judged as it is written."""
    return argument


def needs_nothing(_argument: object) -> frozenset[Capability]:
    """Return what a check needs of a target that gives results at all."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `example` is YAML; `fits` and `misfits` are a value for which it holds and one for which it does not.

    `grammar` is the JSON Schema of its argument; `needs` says what a target must be able to do for this argument.
    """

    name: str
    summary: str
    grammar: Schema
    example: str
    judge: Judge
    fits: Tree = None
    misfits: Tree = None
    read: Read = as_written
    needs: Callable[[Any], frozenset[Capability]] = needs_nothing


@dataclass(frozen=True, slots=True)
class Declares:
    """The decorator that makes a function a check of a registry."""

    registry: Registry[Check]

    def __call__(
        self,
        name: str,
        *,
        summary: str,
        grammar: Schema,
        example: str,
        fits: Tree = None,
        misfits: Tree = None,
        read: Read = as_written,
        needs: Callable[[Any], frozenset[Capability]] = needs_nothing,
    ) -> Callable[[Judge], Judge]:
        """Declare a check; see `Check`."""

        def declare(judge: Judge) -> Judge:
            self.registry.add(
                Check(name, summary, grammar, example, judge=judge, fits=fits, misfits=misfits, read=read, needs=needs)
            )
            return judge

        return declare


MATCHERS: Registry[Check] = Registry("matcher")
"""Checks of any value."""

matcher = Declares(MATCHERS)


def lacks_a_key(grammar: Schema, argument: Tree) -> bool:
    """Return whether the grammar refused a key that `argument` must have, so that what is left cannot be read."""
    return isinstance(argument, dict) and not argument.keys() >= set(grammar.get("required", ()))


def read_check(registry: Registry[Check], reading: Reading, name: str, argument: Tree, path: TreePath) -> Matcher:
    """Return one check as the story at `path` writes it."""
    check = registry[name]
    read = argument if lacks_a_key(check.grammar, argument) else check.read(reading, argument, path)
    return Matcher(name=name, argument=read, mark=reading.mark(path))


def read_checks(registry: Registry[Check], reading: Reading, checks: Mapping[str, Tree], path: TreePath) -> Group:
    """Return the checks of a mapping from their names to their arguments."""
    return tuple(read_check(registry, reading, name, checks[name], (*path, name)) for name in checks)


def judged(value: Tree, one: Matcher, context: Context) -> Finding:
    """Judge one matcher on `value`."""
    return MATCHERS[one.name].judge(value, one.argument, context)


def together(value: Tree, group: Sequence[Matcher], context: Context) -> Finding:
    """Judge a group, all of which must hold; the finding speaks of what decides it."""
    return joined([judged(value, one, context) for one in group])


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
        kind=only.kind if only else None,
    )


def assigned(fits: Sequence[Sequence[int]]) -> Mapping[int, int]:
    """Return which place gets which of `fits`, the places that each can take; as many as can each have one do.

    >>> assigned([[0, 1], [0]])
    {0: 1, 1: 0}
    """
    taken: dict[int, int] = {}

    def gets_one(one: int, tried: set[int]) -> bool:
        for place in fits[one]:
            if place not in tried:
                tried.add(place)
                if place not in taken or gets_one(taken[place], tried):
                    taken[place] = one
                    return True
        return False

    for one in range(len(fits)):
        gets_one(one, set())
    return taken


def negated(finding: Finding) -> Finding:
    """Return the finding that holds where `finding` does not."""
    says = f"{finding.says}, but must not" if finding.holds else finding.says
    return Finding(holds=not finding.holds, says=says, expected=finding.expected and f"not {finding.expected}",
                   actual=finding.actual)  # fmt: skip


def resolved(argument: Any, names: Mapping[str, Tree]) -> Any:
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


def _named(text: str, names: Mapping[str, Tree]) -> Tree:
    whole = REFERENCE.fullmatch(text)
    if whole and whole[1] in names:
        return saved(whole[1], names)
    return written(text, lambda name: saved(name, names) if name in names else f"${{{name}}}")


def saved(name: str, names: Mapping[str, Tree]) -> Tree:
    """Return what was saved as `name`; MissingValue if that is nothing, of which every refusal would hold."""
    value = names.get(name)
    if value is None:
        raise MissingValue(f"nothing was saved as '{name}'")
    return value
