"""What commands print: tables, JSON, and on a terminal how far a long work has come."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import Final, TypeVar

from memstory.contract.target import Tree
from memstory.results.folder.results_file import round_numbers
from memstory.results.runs import quantity

Thing = TypeVar("Thing")

WIDE: Final = 170
"""Characters that a line may have where nobody says how wide the screen is: in a file or a pipe."""

LEAST_COLUMN: Final = 20

_ANSI: Final = {"red": 31, "green": 32}

FIRST_SIGN_SECONDS, _PAUSE_SECONDS = 1.0, 0.2


def say(text: str) -> None:
    """Print `text` as a line."""
    sys.stdout.write(f"{text}\n")


def say_aside(text: str) -> None:
    """Print `text` as a line on stderr, so that a result can go into a file."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def in_colour(text: str, colour: str) -> str:
    """Return `text` in a colour where pytest would use one: NO_COLOR, then FORCE_COLOR, then whether it is a screen."""
    is_screen = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    is_coloured = not os.environ.get("NO_COLOR") and (bool(os.environ.get("FORCE_COLOR")) or is_screen)
    return f"\x1b[{_ANSI[colour]}m{text}\x1b[0m" if is_coloured and colour else text


def complain(text: str) -> None:
    """Print `text` on stderr, apart from results."""
    sys.stderr.write(f"memstory: {text}\n")
    sys.stderr.flush()


def say_json(value: Tree) -> None:
    """Print `value` as indented JSON."""
    say(json.dumps(round_numbers(value, None), indent=1, ensure_ascii=False))


def say_listing(records: Tree, *parts: str, as_json: bool) -> None:
    """Print what a command lists: `records` as JSON for programs, or the `parts` that are not empty, for people."""
    if as_json:
        say_json(records)
    else:
        say("\n\n".join(filter(None, parts)))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int | None]) -> str:
    """Return a table for the screen; a column is wrapped at its width or earlier, and None leaves it as it is."""
    if not rows:
        return ""
    from tabulate import tabulate  # noqa: PLC0415  (most commands print no table)

    return tabulate(rows, headers=headers, disable_numparse=True, maxcolwidths=_fitting(headers, rows, widths))


def screen_width() -> int:
    """Return how many characters a line of the output may have."""
    has_screen = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if has_screen else WIDE


def _fitting(headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int | None]) -> list[int | None]:
    """Return the widths, narrowed from the widest on until a row fits the screen or all are as narrow as is useful."""
    # A header gets two more from tabulate.
    longest = [max(map(len, column)) for column in zip([f"{one}  " for one in headers], *rows, strict=True)]
    shown = [min(wide, limit or wide) for wide, limit in zip(longest, widths, strict=True)]
    free = [place for place, limit in enumerate(widths) if limit is not None]
    excess = sum(shown) + 2 * (len(shown) - 1) - screen_width()
    while excess > 0 and free and shown[widest := max(free, key=shown.__getitem__)] > LEAST_COLUMN:
        shown[widest] -= 1
        excess -= 1
    return [shown[place] if place in free else None for place in range(len(shown))]


def with_progress(things: Sequence[Thing], noun: str) -> Iterator[Thing]:
    """Yield each of `things`; a person who waits at a terminal sees how far it is."""
    return _report_progress(things, len(things), noun) if is_watched() else iter(things)


def is_watched() -> bool:
    """Whether a person at a terminal waits for what is said aside."""
    return sys.stderr.isatty()


def _report_progress(things: Iterable[Thing], count: int, noun: str) -> Iterator[Thing]:
    due = monotonic() + FIRST_SIGN_SECONDS
    shown = False
    for number, thing in enumerate(things, 1):
        yield thing
        if monotonic() >= due:
            due, shown = monotonic() + _PAUSE_SECONDS, True
            sys.stderr.write(f"\r  {number:,}/{quantity(count, noun)}")
            sys.stderr.flush()
    if shown:
        sys.stderr.write("\r\x1b[K")
