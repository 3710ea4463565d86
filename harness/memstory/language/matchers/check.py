"""A check, declared once: what a story writes, how its argument is read, when it holds, and what it finds.

A plain value means `equals`. A mapping whose keys are matcher words means that all of them hold; any other mapping
means `fields`: each named key matches, others are free.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from memstory.contract.errors import MemstoryError, MissingValue
from memstory.contract.target import Capability, Tree
from memstory.language.reading import Reading, TreePath
from memstory.language.references import REFERENCE, fill_references
from memstory.language.registry import Registry
from memstory.language.story import CallPattern, Matcher

_SHOWN = 200
_LARGEST_COMPARED = 20_000
_LONGEST_SHOWN = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether a check holds. `says` is a predicate that is true of the value, whether the check holds or not.

    `kind` is one of a few words for what was found, where the check has such.
    """

    holds: bool
    says: str
    expected: str | None = None
    actual: str | None = None
    difference: str | None = None
    kind: str | None = None


class UndecidableError(MemstoryError):
    """A check of which nobody can say whether it holds: whatever is around it fails, `not` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check may know beside the value: saved names, the texts of what they were saved from, a judge's verdicts.

    `judged` says of facts whether the answer fits them.
    """

    names: Mapping[str, Tree] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, bool] = field(default_factory=dict)


def show(value: Tree, limit: int = _SHOWN) -> str:
    """Return `value` for a sentence: texts in quotes, the rest as JSON, cut to `limit` characters.

    >>> print(show([1, None]), show("abcdef", 4), show("I don't know"))
    [1, null] 'abc…' "I don't know"
    """
    if isinstance(value, str):
        cut = value if len(value) <= limit else f"{value[: limit - 1]}…"
        quote = '"' if "'" in cut and '"' not in cut else "'"
        return quote + cut.replace("\\", "\\\\").replace(quote, f"\\{quote}").replace("\n", "\\n") + quote
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def enumeration(values: Tree) -> str:
    """Return several values for a sentence."""
    return ", ".join(show(value, 80) for value in values) or "nothing"


def structure_difference(wanted: Tree, found: Tree) -> str | None:
    """Return what turns `wanted` into `found`, a line for each change; None unless both are structures of fair size."""
    if not all(isinstance(value, (list, Mapping)) for value in (wanted, found)):
        return None
    if max(len(repr(wanted)), len(repr(found))) > _LARGEST_COMPARED:
        return None

    from deepdiff import DeepDiff  # noqa: PLC0415  (takes up to a second, and most runs find no difference)

    changes = DeepDiff(wanted, found, ignore_numeric_type_changes=True, verbose_level=2)
    text = re.sub(r"\broot(?=[\[ ])", "it", str(changes.pretty()))
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


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


def judge_matcher(value: Tree, one: Matcher, context: Context) -> Finding:
    """Judge one matcher on `value`."""
    return MATCHERS[one.name].judge(value, one.argument, context)


def judge_group(value: Tree, group: Sequence[Matcher], context: Context) -> Finding:
    """Judge a group, all of which must hold; the finding speaks of what decides it."""
    return join_findings([judge_matcher(value, one, context) for one in group])


def join_findings(findings: Sequence[Finding]) -> Finding:
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


def assign_places(fits: Sequence[Sequence[int]]) -> Mapping[int, int]:
    """Return which place gets which of `fits`, the places that each can take; as many as can each have one do.

    >>> assign_places([[0, 1], [0]])
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


def negate(finding: Finding) -> Finding:
    """Return the finding that holds where `finding` does not."""
    says = f"{finding.says}, but must not" if finding.holds else finding.says
    return Finding(holds=not finding.holds, says=says, expected=finding.expected and f"not {finding.expected}",
                   actual=finding.actual)  # fmt: skip


def resolve_names(argument: Any, names: Mapping[str, Tree]) -> Any:
    """Return a matcher, or anything within one, with every `${name}` replaced by what was saved."""
    if isinstance(argument, str):
        return _named(argument, names) if "${" in argument else argument
    if isinstance(argument, Matcher):
        return replace(argument, argument=resolve_names(argument.argument, names))
    if isinstance(argument, CallPattern):
        return replace(argument, args=resolve_names(argument.args, names))
    if isinstance(argument, Mapping):
        return {key: resolve_names(inner, names) for key, inner in argument.items()}
    if isinstance(argument, (list, tuple)):
        return type(argument)(resolve_names(inner, names) for inner in argument)
    return argument


def _named(text: str, names: Mapping[str, Tree]) -> Tree:
    whole = REFERENCE.fullmatch(text)
    if whole and whole[1] in names:
        return saved_value(whole[1], names)
    return fill_references(text, lambda name: saved_value(name, names) if name in names else f"${{{name}}}")


def saved_value(name: str, names: Mapping[str, Tree]) -> Tree:
    """Return what was saved as `name`; MissingValue if that is nothing, of which every refusal would hold."""
    value = names.get(name)
    if value is None:
        raise MissingValue(f"nothing was saved as '{name}'")
    return value


VALUE = {"$ref": "#/$defs/value"}
NUMBER = {"$ref": "#/$defs/number"}
TEXTUAL = {"$ref": "#/$defs/textual"}
"""Grammar of what `group` reads: any value, or one that can only be a number or a text, with matchers of it."""

_OTHER_DIALECTS = {"eq": "equals", "gte": "ge", "lte": "le"}
_NEAR = 0.8
_SHORTEST_NEAR = 5


def read_group(reading: Reading, value: Tree, path: TreePath) -> Group:
    """Return the matchers that `value` stands for; all of them must hold."""
    if not isinstance(value, dict) or not value:
        return (Matcher(name="equals", argument=value, mark=reading.mark(path)),)
    words = [key for key in value if key in MATCHERS]
    if not words:
        for key in value:
            _refuse_slip(reading, key, (*path, key))
        return (read_fields(reading, value, path),)
    for key in value:
        if key not in MATCHERS:
            message = (
                f"'{key}' is not a matcher, but '{words[0]}' beside it is; to speak of keys, put them under `fields:`"
            )
            reading.fault((*path, key), message, at_key=True)
    return tuple(read_check(MATCHERS, reading, word, value[word], (*path, word)) for word in words)


def read_fields(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> Matcher:
    """Return the matcher that checks each key of a mapping by its own group."""
    return Matcher(name="fields", argument=read_groups(reading, value, path), mark=reading.mark(path))


def read_groups(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> dict[str, Group]:
    """Return the group of each key."""
    return {name: read_group(reading, inner, (*path, name)) for name, inner in value.items()}


def read_saved_name(reading: Reading, name: str, path: TreePath) -> str:
    """Return a saved name, which may be written as `${name}`; one that nothing saves is a fault."""
    found = REFERENCE.fullmatch(name)
    name = found[1] if found else name
    reading.known_name(name, path)
    return name


def _refuse_slip(reading: Reading, key: str, path: TreePath) -> None:
    # `field` is too good a name for data to be taken for a slip of `fields`.
    long = [name for name in MATCHERS if len(name) >= _SHORTEST_NEAR and name != "fields"]
    near = [_OTHER_DIALECTS[key]] if key in _OTHER_DIALECTS else difflib.get_close_matches(key, long, 1, _NEAR)
    if near:
        reading.fault(path, f"unknown matcher '{key}'. Did you mean '{near[0]}'? A key that is really called so goes "
                      "under `fields:`", at_key=True)  # fmt: skip
