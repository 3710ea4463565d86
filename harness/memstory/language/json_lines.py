"""JSON Lines: one value a line, and what is wrong with a line in one message that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from memstory.contract.errors import Mark, StoryError
from memstory.contract.target import Tree


def numbered_lines(path: Path, mark: Mark) -> Iterator[tuple[int, Tree]]:
    """Yield the number and the value of each line of a file; `mark` is the story that named the file."""
    # Bytes are split, since the line ends that str.splitlines knows are legal inside a JSON text.
    name = path.name
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                yield number, parse_line(raw, name, number, mark)


def parse_line(raw: bytes, file: str, number: int, mark: Mark) -> Tree:
    """Return the value of one line; StoryError if it is none."""
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip(" \t\r\n")
        tree, end = _DECODER.raw_decode(text)
        return tree if end == len(text) else _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise_line_error(file, number, f"byte {error.start + 1} is not UTF-8", mark)
    except RecursionError:
        raise_line_error(file, number, "the values are nested too deep", mark)
    except ValueError as error:
        raise_line_error(file, number, f"not a JSON object: {error}", mark)


def _no_duplicates(pairs: Sequence[tuple[str, Tree]]) -> dict[str, Tree]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        raise ValueError("a field is given twice")
    return tree


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
"""Made once: a corpus has thousands of lines."""


def raise_line_error(file: str, number: int, problem: str, mark: Mark) -> NoReturn:
    """Raise what is wrong with one line of a file, at the place of the story that named the file."""
    raise StoryError(f"{file}:{number}: {problem}", mark)
