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
    """Return the compiled regular expression; raise ValueError if it is not valid, now or in a later Python."""
    try:
        with warnings.catch_warnings():
            # What a later Python will read differently is a mistake today.
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"'{pattern:.60}' is not a valid regular expression: {error}") from error


def internal_error(error: Exception, mark: Mark) -> StoryError:
    """Return the error that tells an author of an exception in memstory's own code."""
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
        """Return where the key at `path` was written, or the value if it has no key."""
        return self._nearest(self.keys if path in self.keys else self.values, path)

    def _nearest(self, places: Mapping[TreePath, Place], path: TreePath) -> Mark:
        while path and path not in places:
            path, places = path[:-1], self.values
        line, column = places.get(path, (self.mark.line, self.mark.column))
        return Mark(self.file, line, column)


@dataclass(slots=True, kw_only=True)
class Reading:
    """What is known while one story is read.

    Attributes:
        document: The YAML document, which knows the place of each path.
        errors: The faults so far.
        broken_paths: The paths at which the grammar was violated.
        origins: Names that have a value before the story runs -> the key that gives it, such as `vars`.
        saved: Names that the steps so far save.
        vectors: The numbers that stand for a text, by text.
        has_twin: Whether an item so far is marked as `twin`.
    """

    document: StoryDocument
    errors: list[StoryError]
    broken_paths: Sequence[TreePath] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    saved: set[str] = field(default_factory=set)
    vectors: dict[str, Sequence[float]] = field(default_factory=dict)
    has_twin: bool = False

    def fault(self, path: TreePath, message: str, *, at_key: bool = False) -> None:
        """Add an error at the value at `path`, or at its key."""
        mark = self.document.at_key(path) if at_key else self.document.at(path)
        self.errors.append(StoryError(message, mark))

    def mark(self, path: TreePath) -> Mark:
        """Return the place of the key at `path`, or of the value if it has no key."""
        return self.document.at_key(path)

    def is_sound(self, path: TreePath) -> bool:
        """Return whether the grammar was kept at `path` and below."""
        return not any(place[: len(path)] == path for place in self.broken_paths)

    def sound_parts(self, tree: Tree, path: TreePath) -> Tree:
        """Return `tree`, which is at `path`, without its broken keys; None if nothing is left, or a list is broken."""
        if path in self.broken_paths or self.is_sound(path):
            return None if path in self.broken_paths else tree
        if isinstance(tree, dict):
            parts = {key: self.sound_parts(inner, (*path, key)) for key, inner in tree.items()}
            return {key: part for key, part in parts.items() if part is not None} or None
        return None

    def add_vector(self, text: str, vector: Sequence[float], path: TreePath) -> None:
        """Keep `vector` for `text`; another vector for the same text is a fault."""
        numbers = tuple(float(number) for number in vector)
        known = self.vectors.setdefault(text, numbers)
        if known != numbers:
            self.fault(path, f"the text '{text:.60}' has another vector already: {list(known)}; one text, one vector")

    def require_saved(self, name: str, path: TreePath) -> None:
        """Add a fault if no earlier step saves `name`."""
        if name not in self.saved:
            known = f"{suggestion(name, self.saved)} Known: {', '.join(sorted(self.saved)) or 'none'}."
            self.fault(path, f"no earlier step saves '{name}'.{known}")

    def require_names(self, value: Tree, path: TreePath, *, counting: bool) -> None:
        """Add a fault for each `${name}` within `value` that has no value; with `counting`, `${i}` has one."""
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
