"""Expectations as written -> groups of matchers. The grammar was checked before; here its words get their meaning.

A plain value means `equals`. A mapping whose keys are matcher words means that all of them hold; any other mapping
means `fields`: each named key matches, others are free.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from memstory.contract.target import Tree
from memstory.language.matchers.check import MATCHERS, Group, read_check
from memstory.language.reading import Reading, TreePath
from memstory.language.references import REFERENCE
from memstory.language.story import Matcher

VALUE = {"$ref": "#/$defs/value"}
NUMBER = {"$ref": "#/$defs/number"}
TEXTUAL = {"$ref": "#/$defs/textual"}
"""Grammar of what `group` reads: any value, or one that can only be a number or a text, with matchers of it."""

_OTHER_DIALECTS = {"eq": "equals", "gte": "ge", "lte": "le"}
_NEAR = 0.8
_SHORTEST_NEAR = 5


def group(reading: Reading, value: Tree, path: TreePath) -> Group:
    """Return the matchers that `value` stands for; all of them must hold."""
    if not isinstance(value, dict) or not value:
        return (Matcher(name="equals", argument=value, mark=reading.mark(path)),)
    words = [key for key in value if key in MATCHERS]
    if not words:
        for key in value:
            _refuse_slip(reading, key, (*path, key))
        return (fields(reading, value, path),)
    for key in value:
        if key not in MATCHERS:
            message = (
                f"'{key}' is not a matcher, but '{words[0]}' beside it is; to speak of keys, put them under `fields:`"
            )
            reading.fault((*path, key), message, at_key=True)
    return tuple(read_check(MATCHERS, reading, word, value[word], (*path, word)) for word in words)


def fields(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> Matcher:
    """Return the matcher that checks each key of a mapping by its own group."""
    return Matcher(name="fields", argument=groups(reading, value, path), mark=reading.mark(path))


def groups(reading: Reading, value: Mapping[str, Tree], path: TreePath) -> dict[str, Group]:
    """Return the group of each key."""
    return {name: group(reading, inner, (*path, name)) for name, inner in value.items()}


def saved_name(reading: Reading, name: str, path: TreePath) -> str:
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
