"""Rows of `parametrize` that are in a file beside the story: JSON Lines that are read one by one, and never held."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import jsonschema_rs

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree
from memstory.language.grammar import grammar, grammar_version
from memstory.language.json_lines import parse_line
from memstory.language.reading import StoryDocument
from memstory.language.story_paths import Bounds
from memstory.language.violations import violations

KEY: Final = "parametrize"
_SHOWN: Final = 20
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9_.]+")

OpenLines: TypeAlias = Callable[[str, Mark], Iterator[bytes]]
"""What gives the lines of the file that a story names; a StoryError at the place in the story where there is none."""


def lines_beside(folder: Path, *, anywhere: bool = False) -> OpenLines:
    """Return what reads files beside the stories in `folder`; without `anywhere` none outside the stories' root."""

    def lines(name: str, mark: Mark) -> Iterator[bytes]:
        Bounds(base=folder, workspace=folder, anywhere=anywhere).check(f"{KEY}: file", name, mark)
        try:
            with (folder / name).open("rb") as file:
                yield from file
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"the rows in {name} cannot be read: {reason}. The path starts at the story's folder"
            raise StoryError(message, mark) from error

    return lines


def no_lines(name: str, mark: Mark) -> Iterator[bytes]:
    """Read no file: of a text by itself nobody knows where it lies."""
    raise StoryError(f"the rows in {name} are looked up beside the story's file, and this text is in none", mark)


def named_by_first(row: Mapping[str, Tree]) -> str:
    """Return the name that the first value of a row gives it, which may be empty.

    >>> named_by_first({"layout": "Dvořák layout"})
    'Dvo_k_layout'
    """
    return _NOT_IN_IDS.sub("_", str(next(iter(row.values()), ""))).strip("_.")[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One row of a file: its place among the rows, from 0, its line, its name and its values."""

    place: int
    line: int
    name: str
    values: Mapping[str, Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """The rows of one file after one pass over it: how many there are, and a digest of all of them.

    `is_numbered` says that first values name no rows, since some are equal or empty.
    """

    name: str
    mark: Mark
    count: int
    digest: str
    is_numbered: bool
    lines: OpenLines

    def rows(self, wanted: Container[int] | None = None) -> Iterator[FileRow]:
        """Yield the rows, or those at the wanted places; the others are not even parsed."""
        for place, (number, raw) in enumerate(_with_numbers(self.lines(self.name, self.mark))):
            if wanted is None or place in wanted:
                values: Tree = parse_line(raw, Path(self.name).name, number, self.mark)
                name = values.get("row") or (str(place + 1) if self.is_numbered else named_by_first(values))
                yield FileRow(place=place, line=number, name=name, values=values)


class _Names:
    """Which rows of a file could have which name, in a few bytes a row."""

    def __init__(self) -> None:
        self._firsts, self._own = array("q"), array("q")
        self._have_own = bytearray()
        self._empty = False

    def add(self, values: Mapping[str, Tree]) -> None:
        """Note the names of the next row."""
        first, own = named_by_first(values), values.get("row", "")
        self._empty |= not first
        self._firsts.append(hash(first))
        self._own.append(hash(own))
        self._have_own.append(bool(own))

    def are_numbers(self, file: RowFile) -> bool:
        """Return whether first values are no names: some are empty, or equal."""
        firsts = ((row.line, named_by_first(row.values)) for row in file.rows())
        return self._empty or any(_repeats(self._firsts, firsts))

    def repeats(self, file: RowFile) -> Iterator[tuple[int, str, int]]:
        """Yield (line, name, line of the first row of that name) for each name that is there already."""
        if any(self._have_own):
            others = map(hash, map(str, range(1, file.count + 1))) if file.is_numbered else self._firsts
            choices = zip(self._have_own, self._own, others, strict=True)
            hashes = array("q", (own if has_own else other for has_own, own, other in choices))
            yield from _repeats(hashes, ((row.line, row.name) for row in file.rows()))


def _repeats(hashes: array[int], names: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str, int]]:
    """Yield (line, name, line of the first) for each name that an earlier line has; `hashes` are those of the names."""
    # Nearly always none is twice; only names whose hashes are equal are held and compared.
    twice = {one for one, other in pairwise(sorted(hashes)) if one == other}
    first: dict[str, int] = {}
    for one, (line, name) in zip(hashes, names, strict=True) if twice else ():
        if one in twice and first.setdefault(name, line) != line:
            yield line, name, first[name]


def read_row_file(document: StoryDocument, name: str, lines: OpenLines, errors: list[StoryError]) -> RowFile | None:
    """Go once through the file of rows that a document names; None if it is not fit, and `errors` says why.

    Every line is looked at, whoever runs its case: it has to be an object of names and values.
    """
    mark, short = document.at((KEY, "file")), Path(name).name
    names, digest, count = _Names(), blake2b(digest_size=16), 0
    wrong: list[str] = []
    found: RowFile | None = None
    is_valid = _row_validator(grammar_version()).is_valid
    try:
        for number, raw in _with_numbers(lines(name, mark)):
            digest.update(raw)
            count += 1
            try:
                values = parse_line(raw, short, number, mark)
            except StoryError as error:
                wrong.append(error.message)
                continue
            if not is_valid(values):
                wrong.append(f"{short}:{number}: {_problem(values, document)}")
            elif not wrong:
                names.add(values)
        if not count:
            wrong.append(f'{name} holds no row: allowed is one JSON object per line, such as {{"drink": "tea"}}')
        if not wrong:
            file = RowFile(name=name, mark=mark, count=count, digest=digest.hexdigest(), is_numbered=True, lines=lines)
            found = replace(file, is_numbered=names.are_numbers(file))
            wrong += (
                f"{short}:{line}: the row '{twice}' is in line {first} already; give each its own 'row'"
                for line, twice, first in names.repeats(found)
            )
    except StoryError as error:
        wrong.append(error.message)
    errors += [StoryError(one, mark) for one in wrong[:_SHOWN]]
    if len(wrong) > _SHOWN:
        errors.append(StoryError(f"and {len(wrong) - _SHOWN} more lines of {name}", mark))
    return None if wrong else found


def _with_numbers(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((number, raw) for number, raw in enumerate(lines, start=1) if raw.strip())


@lru_cache(maxsize=1)
def _row_validator(_changes: tuple[int, ...]) -> jsonschema_rs.Draft202012Validator:
    whole = grammar()
    return jsonschema_rs.Draft202012Validator({**whole["properties"][KEY]["items"], "$defs": whole["$defs"]})


def _problem(values: Tree, document: StoryDocument) -> str:
    """Return what is wrong with a row, as the grammar says it of one that is written in the story."""
    if not isinstance(values, dict) or not values:
        return "allowed is a JSON object with at least one name and its value"
    faults = violations({KEY: [values]}, document)
    return "; ".join(error.message for path, error in faults if path[:1] == (KEY,))
