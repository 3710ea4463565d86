"""`vars`, `defaults` and `parametrize`: one document becomes one tree for each row, with `${name}` replaced.

The one substitution there is: a text that is just `${name}` becomes the value itself, of whatever type; within a longer
text, the value is written out. Names that are not known here are left for the run, where steps save them, and so is
`$${name}`, which means the text `${name}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree
from memstory.language.reading import Document, TreePath
from memstory.language.references import REFERENCE, unmarked

_KEPT = frozenset({"vars", "defaults", "parametrize", "story", "tags", "covers"})
_RUN = frozenset({"steps", "expect"})
"""Where names are looked up again when the story runs."""

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The tree of one row; `name` is None where the story has no `parametrize`.

    `given` are the names that were replaced in it, each with the key that gave it its value.
    """

    name: str | None
    tree: Tree
    given: Mapping[str, str]


def rows(document: Document, errors: list[StoryError]) -> Iterator[Row]:
    """Yield one tree for each row; what is wrong with names and values goes to `errors`."""
    tree = document.tree
    constants, defaults = _mapping(tree.get("vars")), _mapping(tree.get("defaults"))
    listed = tree.get("parametrize")
    errors += _clashes(document, "defaults", defaults, constants)
    given = dict.fromkeys(defaults, "defaults") | dict.fromkeys(constants, "vars")
    if not isinstance(listed, list) or not listed:
        yield Row(name=None, tree=_filled(document, {**defaults, **constants}, errors), given=given)
        return
    names = _row_names(document, listed, errors)
    for index, values in enumerate(listed):
        own = {name: value for name, value in _mapping(values).items() if name != "row"}
        errors += _clashes(document, ("parametrize", index), own, constants)
        tree_of_row = _filled(document, {**defaults, **constants, **own}, errors)
        yield Row(name=names[index], tree=tree_of_row, given=given | dict.fromkeys(own, "parametrize"))


def _mapping(value: Tree) -> Mapping[str, Tree]:
    return value if isinstance(value, dict) else {}


def _clashes(
    document: Document, where: str | TreePath, values: Mapping[str, Tree], constants: Mapping[str, Tree]
) -> list[StoryError]:
    path = (where,) if isinstance(where, str) else where
    return [
        StoryError(f"'{name}' is under `vars` already; put it under `defaults` if rows may change it",
                   document.at_key((*path, name)))
        for name in values if name in constants
    ]  # fmt: skip


def _row_names(document: Document, listed: list[Tree], errors: list[StoryError]) -> list[str]:
    """Name rows by `row`, else by their first value where that tells them apart, else by number."""
    first = [_NOT_IN_IDS.sub("_", str(next(iter(_mapping(row).values()), ""))).strip("_.")[:40] for row in listed]
    told_apart = all(first) and len(set(first)) == len(first)
    names: list[str] = []
    for index, row in enumerate(listed):
        name = str(_mapping(row).get("row", first[index] if told_apart else index + 1))
        if name in names:
            errors.append(StoryError(f"the row '{name}' is listed twice; give each its own `row:`",
                                     document.at(("parametrize", index))))  # fmt: skip
        names.append(name)
    return names


def _filled(document: Document, names: Mapping[str, Tree], errors: list[StoryError]) -> Tree:
    is_marked = "$${" in document.text
    if not names and not is_marked:
        return document.tree
    filled = {
        key: value if key in _KEPT else _fill(value, names, document, (key,), errors)
        for key, value in document.tree.items()
    }
    if not is_marked:
        return filled
    return {key: value if key in _KEPT | _RUN else _unmarked(value) for key, value in filled.items()}


def _unmarked(value: Tree) -> Tree:
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unmarked(inner) for inner in value]
    return unmarked(value) if isinstance(value, str) else value


def _fill(value: Tree, names: Mapping[str, Tree], document: Document, path: TreePath, errors: list[StoryError]) -> Tree:
    if isinstance(value, dict):
        return {key: _fill(inner, names, document, (*path, key), errors) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fill(inner, names, document, (*path, index), errors) for index, inner in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    whole = REFERENCE.fullmatch(value)
    if whole and whole[1] in names:
        return names[whole[1]]
    return REFERENCE.sub(lambda found: _written(found, names, document.at(path), errors), value)


def _written(found: re.Match[str], names: Mapping[str, Tree], mark: Mark, errors: list[StoryError]) -> str:
    if found[1] not in names:
        return found[0]
    value = names[found[1]]
    if isinstance(value, (dict, list)):
        word = "list" if isinstance(value, list) else "mapping"
        errors.append(StoryError(f"{found[0]} is a {word}, which cannot be part of a text; give it alone", mark))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)
