"""The state of reading one story: places, faults, saved names, vectors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree
from memstory.language.references import REFERENCE
from memstory.language.registry import suggestion

COUNTER = "i"
"""The name that counts the passes of `repeat` and `parallel`."""


OUR_FAULT: Final = "this is a fault of memstory, please report it"

TreePath: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[int, int]


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that somebody wrote; ValueError says what is wrong with it."""
    try:
        with warnings.catch_warnings():
            # What a later Python will read differently is a mistake today.
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"'{pattern:.60}' is not a valid regular expression: {error}") from error


def internal_error(error: Exception, mark: Mark) -> StoryError:
    """Return the error of a document for an exception that reading it should not have raised."""
    return StoryError(f"{type(error).__name__}: {error}: {OUR_FAULT}", mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryDocument:
    """One YAML document: its tree, the places of its values and keys by path, and all that was wrong with it.

    `tree` is None where the syntax was broken. Places are (line, column) in the file, from 1.
    """

    file: str
    index: int
    text: str
    mark: Mark
    tree: Tree = None
    values: Mapping[TreePath, Place] = field(default_factory=dict)
    keys: Mapping[TreePath, Place] = field(default_factory=dict)
    errors: Sequence[StoryError] = ()

    def at(self, path: TreePath) -> Mark:
        """Return where the value at `path` was written, or the nearest thing around it."""
        return self._nearest(self.values, path)

    def at_key(self, path: TreePath) -> Mark:
        """Return where the key that leads to `path` was written."""
        return self._nearest(self.keys if path in self.keys else self.values, path)

    def _nearest(self, places: Mapping[TreePath, Place], path: TreePath) -> Mark:
        while path and path not in places:
            path, places = path[:-1], self.values
        line, column = places.get(path, (self.mark.line, self.mark.column))
        return Mark(self.file, line, column)


@dataclass(slots=True, kw_only=True)
class Reading:
    """The state of reading one story. `broken` are the paths at which the grammar was violated.

    `given` are the names that stand for values before the story runs, each with the key that gives it one.
    """

    document: StoryDocument
    errors: list[StoryError]
    broken: Sequence[TreePath] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    saved: set[str] = field(default_factory=set)
    vectors: dict[str, Sequence[float]] = field(default_factory=dict)
    has_twin: bool = False

    def fault(self, path: TreePath, message: str, *, at_key: bool = False) -> None:
        """Note what is wrong at `path`."""
        mark = self.document.at_key(path) if at_key else self.document.at(path)
        self.errors.append(StoryError(message, mark))

    def mark(self, path: TreePath) -> Mark:
        """Return where the key that leads to `path` was written, or the value where there is no key."""
        return self.document.at_key(path)

    def sound(self, path: TreePath) -> bool:
        """Return whether the grammar had nothing against what is at `path` and below."""
        return not any(place[: len(path)] == path for place in self.broken)

    def sound_parts(self, tree: Tree, path: TreePath) -> Tree:
        """Return what the grammar left of the tree at `path`: mappings lose what is broken, a list goes as a whole."""
        if path in self.broken or self.sound(path):
            return None if path in self.broken else tree
        if isinstance(tree, dict):
            parts = {key: self.sound_parts(inner, (*path, key)) for key, inner in tree.items()}
            return {key: part for key, part in parts.items() if part is not None} or None
        return None

    def vector(self, text: str, vector: Sequence[float], path: TreePath) -> None:
        """Note that `vector` stands for `text`; another vector for the same text is a fault."""
        numbers = tuple(float(number) for number in vector)
        known = self.vectors.setdefault(text, numbers)
        if known != numbers:
            self.fault(path, f"the text '{text:.60}' has another vector already: {list(known)}; one text, one vector")

    def known_name(self, name: str, path: TreePath) -> None:
        """Make it a fault that no step before has saved `name`."""
        if name not in self.saved:
            known = f"saved before: {', '.join(sorted(self.saved))}" if self.saved else "nothing is saved before"
            self.fault(path, f"no earlier step saves '{name}'.{suggestion(name, self.saved)} ({known})")

    def known_references(self, value: Tree, path: TreePath, *, counting: bool) -> None:
        """Make each `${name}` within `value` a fault whose name stands for nothing; `counting` knows `${i}`."""
        known = self.saved | ({COUNTER} if counting else set())
        for inner, name in _references(value, path):
            if name not in known:
                hint = " (${i} counts inside `repeat` and `parallel`)" if name == COUNTER else ""
                self.fault(
                    inner,
                    f"unknown name ${{{name}}}{hint}.{suggestion(name, known)} A name comes from `save:` of an earlier "
                    "step, `vars:`, `defaults:` or a row of `parametrize:`",
                )


def _references(value: Tree, path: TreePath) -> Iterator[tuple[TreePath, str]]:
    if isinstance(value, str):
        if "${" in value:
            yield from ((path, name) for name in REFERENCE.findall(value))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _references(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _references(inner, (*path, index))
