"""What a check is, how groups of matchers are read and judged, and the registry of matchers.

A plain value means `equals`. A mapping whose keys are names of matchers means that all of them hold; any other mapping
means `fields`: each of its keys has a matching value, and more keys are allowed.
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

_LONGEST_IN_SENTENCE = 200
_LARGEST_COMPARED = 20_000
_LONGEST_DIFFERENCE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether a check holds for a value, and what reports show of it.

    Attributes:
        holds: Whether it does.
        says: A predicate that is true of the value in both cases, such as "contains 'tea'".
        expected: What the check wants, for reports.
        actual: The value, or what of it matters, for reports.
        difference: A line for each change between the expected structure and the actual one.
        kind: A word by which reports group findings, for a few checks.
    """

    holds: bool
    says: str
    expected: str | None = None
    actual: str | None = None
    difference: str | None = None
    kind: str | None = None


class UndecidableError(MemstoryError):
    """A check that cannot be judged: all that it is part of fails, also `not`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a check knows beside the value.

    Attributes:
        names: The saved names with their values.
        contents: The text that each saved memory had, by saved name.
        judged: Facts -> whether the judge finds that the answer agrees with them.
    """

    names: Mapping[str, Tree] = field(default_factory=dict)
    contents: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, bool] = field(default_factory=dict)


def show(value: Tree, limit: int = _LONGEST_IN_SENTENCE) -> str:
    """Return `value` for a sentence, at most `limit` characters: a text in quotes, anything else as JSON.

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
    """Return the values, each as `show` does, with commas; "nothing" if there are none."""
    return ", ".join(show(value, 80) for value in values) or "nothing"


def structure_difference(wanted: Tree, found: Tree) -> str | None:
    """Return a line for each change from `wanted` to `found`; None unless both are lists or mappings of fair size."""
    if not all(isinstance(value, (list, Mapping)) for value in (wanted, found)):
        return None
    if max(len(repr(wanted)), len(repr(found))) > _LARGEST_COMPARED:
        return None

    from deepdiff import DeepDiff  # noqa: PLC0415  (takes up to a second, and most runs find no difference)

    changes = DeepDiff(wanted, found, ignore_numeric_type_changes=True, verbose_level=2)
    text = re.sub(r"\broot(?=[\[ ])", "it", str(changes.pretty()))
    return text if len(text) <= _LONGEST_DIFFERENCE else f"{text[: _LONGEST_DIFFERENCE - 1]}…"


Schema: TypeAlias = Mapping[str, Tree]
Group: TypeAlias = tuple[Matcher, ...]
Judge: TypeAlias = Callable[[Any, Any, Context], Finding]
"""(actual value, argument of the check, context) -> finding."""

Read: TypeAlias = Callable[[Reading, Any, TreePath], object]
"""(what reading a story collects, the argument as written, its path) -> the argument as it is judged."""


def read_plain(_reading: Reading, argument: Tree, _path: TreePath) -> Tree:
    """Return the argument as it is written."""
    return argument


def needs_nothing(_argument: object) -> frozenset[Capability]:
    """Return no capabilities: the check needs only the value."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    Attributes:
        name: What a story writes, such as `contains`.
        summary: When it holds, in a few words without a full stop.
        grammar: The JSON Schema of its argument.
        example: YAML of the check with an argument.
        judge: (value, argument, context) -> finding.
        fits: A value for which the example holds.
        misfits: A value for which it does not.
        read: (reading, argument, its path) -> the argument that `judge` gets.
        needs: argument -> the capabilities that a target needs for it.
    """

    name: str
    summary: str
    grammar: Schema
    example: str
    judge: Judge
    fits: Tree = None
    misfits: Tree = None
    read: Read = read_plain
    needs: Callable[[Any], frozenset[Capability]] = needs_nothing


@dataclass(frozen=True, slots=True)
class CheckDecorator:
    """A decorator for functions that judge: it adds a `Check` to `registry`."""

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
        read: Read = read_plain,
        needs: Callable[[Any], frozenset[Capability]] = needs_nothing,
    ) -> Callable[[Judge], Judge]:
        """Return the decorator for one check, with the attributes of `Check`."""

        def declare(judge: Judge) -> Judge:
            self.registry.add(
                Check(name, summary, grammar, example, judge=judge, fits=fits, misfits=misfits, read=read, needs=needs)
            )
            return judge

        return declare


MATCHERS: Registry[Check] = Registry("matcher")
"""The checks of a value of any type."""

matcher = CheckDecorator(MATCHERS)


def lacks_a_key(grammar: Schema, argument: Tree) -> bool:
    """Return whether `argument` lacks a key that `grammar` requires, so that it cannot be read."""
    return isinstance(argument, dict) and not argument.keys() >= set(grammar.get("required", ()))


def read_check(registry: Registry[Check], reading: Reading, name: str, argument: Tree, path: TreePath) -> Matcher:
    """Return the check `name` of a story with its `argument`, which is at `path`."""
    check = registry[name]
    read = argument if lacks_a_key(check.grammar, argument) else check.read(reading, argument, path)
    return Matcher(name=name, argument=read, mark=reading.mark(path))


def read_checks(registry: Registry[Check], reading: Reading, checks: Mapping[str, Tree], path: TreePath) -> Group:
    """Return the checks of a mapping, {name: argument}, which is at `path`."""
    return tuple(read_check(registry, reading, name, checks[name], (*path, name)) for name in checks)


def judge_matcher(value: Tree, one: Matcher, context: Context) -> Finding:
    """Return the finding of one matcher on `value`."""
    return MATCHERS[one.name].judge(value, one.argument, context)


def judge_group(value: Tree, group: Sequence[Matcher], context: Context) -> Finding:
    """Return one finding of a group of matchers on `value`: they must all hold."""
    return join_findings([judge_matcher(value, one, context) for one in group])


def join_findings(findings: Sequence[Finding]) -> Finding:
    """Return one finding for several that must all hold; it tells of those that do not, or else of all."""
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
    """Return {place: index} such that as many as possible have a place; `fits[index]` are the places that suit it.

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
    """Return the opposite of `finding`."""
    says = f"{finding.says}, but must not" if finding.holds else finding.says
    return Finding(holds=not finding.holds, says=says, expected=finding.expected and f"not {finding.expected}",
                   actual=finding.actual)  # fmt: skip


def resolve_names(argument: Any, names: Mapping[str, Tree]) -> Any:
    """Return a matcher, or an argument of one, with the value of each saved `${name}`; see `saved_value`."""
    if isinstance(argument, str):
        return _fill_names(argument, names) if "${" in argument else argument
    if isinstance(argument, Matcher):
        return replace(argument, argument=resolve_names(argument.argument, names))
    if isinstance(argument, CallPattern):
        return replace(argument, args=resolve_names(argument.args, names))
    if isinstance(argument, Mapping):
        return {key: resolve_names(inner, names) for key, inner in argument.items()}
    if isinstance(argument, (list, tuple)):
        return type(argument)(resolve_names(inner, names) for inner in argument)
    return argument


def _fill_names(text: str, names: Mapping[str, Tree]) -> Tree:
    whole = REFERENCE.fullmatch(text)
    if whole and whole[1] in names:
        return saved_value(whole[1], names)
    return fill_references(text, lambda name: saved_value(name, names) if name in names else f"${{{name}}}")


def saved_value(name: str, names: Mapping[str, Tree]) -> Tree:
    """Return the value of a saved name; raise MissingValue for None, for which each `not` would hold."""
    value = names.get(name)
    if value is None:
        raise MissingValue(f"nothing was saved as '{name}'")
    return value


VALUE = {"$ref": "#/$defs/value"}
NUMBER = {"$ref": "#/$defs/number"}
TEXTUAL = {"$ref": "#/$defs/textual"}
"""The grammar of what `read_group` reads: any value, or a number, or a text, or a mapping of matchers."""

_OTHER_DIALECTS = {"eq": "equals", "gte": "ge", "lte": "le"}
_NEAR = 0.8
_SHORTEST_NEAR = 5


def read_group(reading: Reading, value: Tree, path: TreePath) -> Group:
    """Return the matchers that a story writes as `value`; they must all hold."""
    if not isinstance(value, dict) or not value:
        return (Matcher(name="equals", argument=value, mark=reading.mark(path)),)
    words = [key for key in value if key in MATCHERS]
    if not words:
        for key in value:
            _check_spelling(reading, key, (*path, key))
        return (read_fields(reading, value, path),)
    for key in value:
        if key not in MATCHERS:
            message = (
                f"'{key}' is not a matcher, but '{words[0]}' beside it is; to speak of keys, put them under `fields:`"
            )
            reading.fault((*path, key), message, at_key=True)
    return tuple(read_check(MATCHERS, reading, word, value[word], (*path, word)) for word in words)


def read_fields(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> Matcher:
    """Return the matcher `fields` for a mapping of groups."""
    return Matcher(name="fields", argument=read_groups(reading, value, path), mark=reading.mark(path))


def read_groups(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> dict[str, Group]:
    """Return the group of matchers of each key."""
    return {name: read_group(reading, inner, (*path, name)) for name, inner in value.items()}


def read_saved_name(reading: Reading, name: str, path: TreePath) -> str:
    """Return a saved name, written as `name` or `${name}`; one that no earlier step saves is a fault."""
    found = REFERENCE.fullmatch(name)
    name = found[1] if found else name
    reading.require_saved(name, path)
    return name


def _check_spelling(reading: Reading, key: str, path: TreePath) -> None:
    # `field` is too good a name for data to be taken for a slip of `fields`.
    long = [name for name in MATCHERS if len(name) >= _SHORTEST_NEAR and name != "fields"]
    near = [_OTHER_DIALECTS[key]] if key in _OTHER_DIALECTS else difflib.get_close_matches(key, long, 1, _NEAR)
    if near:
        reading.fault(path, f"unknown matcher '{key}'. Did you mean '{near[0]}'? A key that is really called so goes "
                      "under `fields:`", at_key=True)  # fmt: skip
