"""Paths that a story names: below the stories' root or in the case's folder, unless an option allows more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree

OPTION: Final = "--memstory-any-path"
_CASSETTE = re.compile(r"(record:[^@]*@|replay:)(.+)", re.DOTALL)
_HOME = re.compile(r"~[\w.-]*(/.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a story may name: files below the root around `base`, its own folder, and in the folder of its case.

    With `anywhere` it may name any, for the person at the command line said so.
    """

    base: Path
    workspace: Path
    anywhere: bool = False

    def check(self, what: str, value: Tree, mark: Mark | None = None) -> None:
        """Raise StoryError if a text in `value`, taken for a path, leads out; `what` is where the story has it."""
        for name, text in _texts(value, what):
            if not self.anywhere and (path := self._outside(text)) is not None:
                allowed = f"the stories' root {root_around(self.base)} and the case's own folder"
                message = f"{name} names {path}, which is outside {allowed}: keep it below one of them"
                raise StoryError(f"{message}; {OPTION} allows any path", mark)

    def whole(self, options: Mapping[str, Tree]) -> Mapping[str, Tree]:
        """Return `options` in which recordings of chat models are named from the root of the file system."""
        return {name: self._whole(value) for name, value in options.items()}

    def _whole(self, value: Tree) -> Tree:
        found = _CASSETTE.fullmatch(value) if isinstance(value, str) else None
        return f"{found[1]}{self.base.absolute() / Path(found[2])}" if found else value

    def _outside(self, text: str) -> Path | None:
        named = _path_in(text)
        if named is None or _HOME.fullmatch(named):
            return None if named is None else Path(named)
        # A recording is looked up from the story's folder; where a target looks for other files, only it knows.
        for start in (self.base,) if _CASSETTE.fullmatch(text) else (self.base, self.workspace):
            # Resolved, so that a symlink counts as what it leads to.
            path = (start / named).resolve()
            if not any(path.is_relative_to(around) for around in (root_around(self.base), self.workspace.resolve())):
                return path
        return None


def root_around(base: Path) -> Path:
    """Return the nearest folder `stories` around `base`, or `base` itself where there is none."""
    folder = base.resolve()
    return next((around for around in (folder, *folder.parents) if around.name == "stories"), folder)


def _path_in(text: str) -> str | None:
    """Return what of an option or argument a target may take for a path; None if it cannot be one."""
    if "\0" in text:
        return None
    if found := _CASSETTE.fullmatch(text):
        return found[2]
    if "://" not in text:
        return text
    try:
        address = urlsplit(text)
    except ValueError:
        return text
    # An address of a server is not a path; `file:///tmp/x` and `sqlite:///x.db` are.
    return None if address.netloc else address.path


def _texts(value: Tree, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, f"{name}: {key}")
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner, name)
