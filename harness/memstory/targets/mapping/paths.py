"""Paths into a reply: `memory.id`, `documents[0]`, `entities[*].name`; JSON in a string is read too."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memstory.contract.target import Tree

_STEP: Final = re.compile(
    r"\.?\"(?P<quoted>[^\"]*)\"|\[(?P<index>-?\d+)\]|\[(?P<every>\*)\]|\.?(?P<name>[^.\[\]\s\"][^.\[\]\"]*)"
)


class NotThereError(Exception):
    """The reply has nothing at that place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Names, indexes, and None for `[*]`; without steps it is the reply itself."""

    written: str
    steps: Sequence[str | int | None]


def parse_path(written: str) -> Path:
    """Return the path that is written; `""` and `"."` are the reply itself.

    Raises:
        ValueError: it cannot be read as a path.
    """
    steps: list[str | int | None] = []
    place = 0
    rest = "" if written == "." else written
    while place < len(rest):
        step = _STEP.match(rest, place)
        if step is None or (place == 0 and rest.startswith(".")):
            raise ValueError(f"{written!r} is not a path, such as 'memory.id', 'documents[0]' or 'entities[*].name'")
        if step["index"] is not None:
            steps.append(int(step["index"]))
        elif step["every"]:
            steps.append(None)
        else:
            steps.append(step["quoted"] if step["quoted"] is not None else step["name"])
        place = step.end()
    return Path(written=written, steps=tuple(steps))


def find(path: Path, tree: Tree) -> Tree:
    """Return what `tree` has at `path`; for a path with `[*]` a list.

    Raises:
        NotThereError: a name or an index that is not there, or something on the way that has no parts.
    """
    return _find(path.steps, tree)


def _find(steps: Sequence[str | int | None], tree: Tree) -> Tree:
    if not steps:
        return tree
    step, rest = steps[0], steps[1:]
    tree = _opened(tree)
    if step is None:
        if not isinstance(tree, list):
            raise NotThereError(f"[*] wants a list, there is {_kind(tree)}")
        found = [_find(rest, element) for element in tree]
        return [inner for one in found for inner in one] if None in rest else found
    if isinstance(step, int):
        if not isinstance(tree, list):
            raise NotThereError(f"[{step}] wants a list, there is {_kind(tree)}")
        if not -len(tree) <= step < len(tree):
            raise NotThereError(f"[{step}] is beyond the end of a list of {len(tree)}")
        return _find(rest, tree[step])
    if not isinstance(tree, dict):
        raise NotThereError(f"'{step}' wants an object, there is {_kind(tree)}")
    if step not in tree:
        has = ", ".join(map(str, tree)) or "nothing"
        raise NotThereError(f"there is no '{step}'; there is {has:.200}")
    return _find(rest, tree[step])


def _opened(tree: Tree) -> Tree:
    if not isinstance(tree, str):
        return tree
    try:
        return json.loads(tree)
    except ValueError:
        return tree


def _kind(tree: Tree) -> str:
    words = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return words.get(type(tree), "a number")
