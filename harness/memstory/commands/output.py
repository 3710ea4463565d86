"""What commands print: tables, JSON, and on a terminal how far a long work has come."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TypeVar

from memstory.target import Tree

Thing = TypeVar("Thing")

FIRST_SIGN_SECONDS, _PAUSE_SECONDS = 1.0, 0.2


def say(text: str) -> None:
    """Print `text` as a line."""
    sys.stdout.write(f"{text}\n")


def complain(text: str) -> None:
    """Print `text` on stderr, apart from results."""
    sys.stderr.write(f"memstory: {text}\n")
    sys.stderr.flush()


def say_json(value: Tree) -> None:
    """Print `value` as indented JSON."""
    say(json.dumps(value, indent=1, ensure_ascii=False))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int | None]) -> str:
    """Return a table for a terminal; a column is wrapped at its width, and None leaves it as wide as it is."""
    if not rows:
        return ""
    from tabulate import tabulate  # noqa: PLC0415  (most commands print no table)

    return tabulate(rows, headers=headers, disable_numparse=True, maxcolwidths=list(widths))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "story"), counted(2, "story"), counted(0, "error")
    ('1 story', '2 stories', '0 errors')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def with_progress(things: Sequence[Thing], noun: str) -> Iterator[Thing]:
    """Yield each of `things`; a person who waits at a terminal sees how far it is."""
    return _told(things, len(things), noun) if sys.stderr.isatty() else iter(things)


def _told(things: Iterable[Thing], count: int, noun: str) -> Iterator[Thing]:
    due = monotonic() + FIRST_SIGN_SECONDS
    shown = False
    for number, thing in enumerate(things, 1):
        yield thing
        if monotonic() >= due:
            due, shown = monotonic() + _PAUSE_SECONDS, True
            sys.stderr.write(f"\r  {number:,}/{counted(count, noun)}")
            sys.stderr.flush()
    if shown:
        sys.stderr.write("\r\x1b[K")
