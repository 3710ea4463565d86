"""Expectation trees to matchers. The grammar has been held against the tree before; here its words get their meaning.

A plain value means `equals`. A mapping whose keys are matcher words means that all of them hold; any other mapping
means `fields`: each named key matches, others are free.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from jsonschema import Draft202012Validator, SchemaError

from memstory.language.reading import Reading
from memstory.language.references import REFERENCE, written
from memstory.language.story import CallPattern, Matcher
from memstory.language.text import TreePath
from memstory.language.vocabulary import MATCHERS
from memstory.target import Json

Group: TypeAlias = tuple[Matcher, ...]
HitEntry: TypeAlias = str | Mapping[str, Group]

_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*(?<!\\)[+*}](?:[^()\\]|\\.)*\)[+*{]")
_OTHER_DIALECTS = {"eq": "equals", "gte": "ge", "lte": "le", "in": "one_of", "matches": "regex", "count": "length"}
_JSON_TYPES = {"string": "text", "array": "list", "object": "mapping"}
_NEAR = 0.8
_SHORTEST_NEAR = 5


def group(reading: Reading, value: Json, path: TreePath) -> Group:
    """Return the matchers that `value` stands for; all of them must hold."""
    if not isinstance(value, dict) or not value:
        return (Matcher(name="equals", argument=value, mark=reading.mark(path)),)
    words = [key for key in value if key in MATCHERS]
    if not words:
        for key in value:
            _refuse_slip(reading, key, (*path, key))
        return (fields(reading, value, path),)
    matchers = []
    for key, argument in value.items():
        if key in MATCHERS:
            matchers.append(_matcher(reading, key, argument, (*path, key)))
        else:
            message = (
                f"'{key}' is no matcher, but '{words[0]}' beside it is; to speak of keys, put them under `fields:`"
            )
            reading.fault((*path, key), message, at_key=True)
    return tuple(matchers)


def fields(reading: Reading, value: Mapping[str, Json], path: TreePath) -> Matcher:
    """Return the matcher that holds each key of a mapping against its own group."""
    return Matcher(name="fields", argument=_groups(reading, value, path), mark=reading.mark(path))


def _refuse_slip(reading: Reading, key: str, path: TreePath) -> None:
    # `field` is too good a name for data to be taken for a slip of `fields`.
    long = [name for name in MATCHERS if len(name) >= _SHORTEST_NEAR and name != "fields"]
    near = [_OTHER_DIALECTS[key]] if key in ("eq", "gte", "lte") else difflib.get_close_matches(key, long, 1, _NEAR)
    if near:
        reading.fault(path, f"unknown matcher '{key}'. Did you mean '{near[0]}'? A key that is really called so goes "
                      "under `fields:`", at_key=True)  # fmt: skip


def _groups(reading: Reading, value: Mapping[str, Json], path: TreePath) -> dict[str, Group]:
    return {name: group(reading, inner, (*path, name)) for name, inner in value.items()}


def _matcher(reading: Reading, name: str, argument: Json, path: TreePath) -> Matcher:
    read = _ARGUMENTS.get(name)
    return Matcher(name=name, argument=read(reading, argument, path) if read else argument, mark=reading.mark(path))


def _alternatives(reading: Reading, argument: Json, path: TreePath) -> Group | tuple[Group, ...]:
    if not isinstance(argument, list):
        return group(reading, argument, path)
    return tuple(group(reading, inner, (*path, index)) for index, inner in enumerate(argument))


def _regex(reading: Reading, pattern: str, path: TreePath) -> str:
    try:
        re.compile(written(pattern, lambda _: "x"))
    except (re.error, OverflowError, RecursionError) as error:
        reading.fault(path, f"'{pattern:.60}' is no regular expression: {error}")
    if _NESTED_REPEAT.search(pattern):
        reading.fault(path, f"'{pattern:.60}' repeats a group that repeats, which can take forever on a long text; "
                      "write it with one repetition")  # fmt: skip
    return pattern


def _schema(reading: Reading, schema: Json, path: TreePath) -> Json:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        reading.fault(path, f"is no JSON Schema: {error.message:.120}")
    return schema


def _type(_reading: Reading, name: str | None, _path: TreePath) -> str:
    # Unquoted, YAML reads the word null as nothing.
    return _JSON_TYPES.get(name, name) if name else "null"


def _occurs(reading: Reading, argument: Mapping[str, Json], path: TreePath) -> tuple[tuple[str | Group, Group], ...]:
    if argument.keys() != {"of", "times"}:
        if isinstance(argument.get("of"), dict):
            reading.fault(path, "'occurs' needs 'times' beside 'of', and nothing else", at_key=True)
        return tuple((text, group(reading, times, (*path, text))) for text, times in argument.items())
    of, times = argument["of"], group(reading, argument["times"], (*path, "times"))
    return ((of if isinstance(of, str) else group(reading, of, (*path, "of")), times),)


def _saved_name(reading: Reading, name: str, path: TreePath) -> str:
    found = REFERENCE.fullmatch(name)
    name = found[1] if found else name
    reading.known_name(name, path)
    return name


_ARGUMENTS: Mapping[str, Callable[[Reading, Json, TreePath], object]] = {
    "all": _alternatives,
    "any": _alternatives,
    "fields": _groups,
    "json_schema": _schema,
    "length": group,
    "not": group,
    "occurs": _occurs,
    "regex": _regex,
    "same_as": _saved_name,
    "type": _type,
}


def hit_checks(reading: Reading, checks: Mapping[str, Json], path: TreePath) -> Group:
    """Return the checks of a list of hits; their arguments are as `memstory.language.story.Matcher` describes."""
    return tuple(
        Matcher(name=name, argument=_hit_argument(reading, name, argument, (*path, name)),
                mark=reading.mark((*path, name)))
        for name, argument in checks.items()
    )  # fmt: skip


def _hit_argument(reading: Reading, name: str, argument: Json, path: TreePath) -> object:
    if name in ("first", "includes", "excludes", "order"):
        return _hit_entries(reading, argument, path)
    if name in ("count", "text"):
        return group(reading, argument, path)
    if name == "not":
        return hit_checks(reading, argument, path)
    if name == "explain" or (name == "scores" and isinstance(argument, dict) and not MATCHERS.keys() & argument.keys()):
        for saved in argument:
            reading.known_name(saved, (*path, saved))
        return _groups(reading, argument, path)
    return group(reading, argument, path) if name == "scores" else argument


def _hit_entries(reading: Reading, argument: Json, path: TreePath) -> tuple[HitEntry, ...]:
    if isinstance(argument, list):
        return tuple(_hit_entry(reading, entry, (*path, index)) for index, entry in enumerate(argument))
    return (_hit_entry(reading, argument, path),)


def _hit_entry(reading: Reading, entry: Json, path: TreePath) -> HitEntry:
    return _saved_name(reading, entry, path) if isinstance(entry, str) else _groups(reading, entry, path)


def call_checks(reading: Reading, checks: Json, path: TreePath) -> Group:
    """Return the checks of the tool calls of a turn; a plain list means `in_order`, an empty one `none`."""
    if isinstance(checks, list):
        if not checks:
            return (Matcher(name="none", argument=True, mark=reading.mark(path)),)
        return (Matcher(name="in_order", argument=_calls(reading, checks, path), mark=reading.mark(path)),)
    return tuple(
        Matcher(name=name, argument=_call_argument(reading, name, argument, (*path, name)),
                mark=reading.mark((*path, name)))
        for name, argument in checks.items()
    )  # fmt: skip


def _call_argument(reading: Reading, name: str, argument: Json, path: TreePath) -> object:
    if name == "count":
        return group(reading, argument, path)
    if name == "not":
        return call_checks(reading, argument, path)
    if name == "none":
        if argument is False:
            reading.fault(path, "'none: false' says nothing; write {count: {ge: 1}}, or leave it out")
        return (argument,) if isinstance(argument, str) else argument if argument in (True, False) else tuple(argument)
    if name == "any_of":
        return tuple(
            _calls(reading, one, (*path, index)) if isinstance(one, list) else (_call(reading, one, (*path, index)),)
            for index, one in enumerate(argument)
        )
    return _calls(reading, argument, path)


def _calls(reading: Reading, calls: list[Json], path: TreePath) -> tuple[CallPattern, ...]:
    return tuple(_call(reading, call, (*path, index)) for index, call in enumerate(calls))


def _call(reading: Reading, call: Json, path: TreePath) -> CallPattern:
    if isinstance(call, str):
        return CallPattern(name=call, args={}, mark=reading.mark(path))
    ((name, args),) = call.items()
    return CallPattern(name=name, args=_groups(reading, args or {}, (*path, name)), mark=reading.mark(path))
