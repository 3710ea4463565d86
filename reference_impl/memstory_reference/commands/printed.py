"""How commands print what is remembered, ask before they delete it, and write it to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tabulate import tabulate

from memstory.contract.errors import SetupError
from memstory.contract.values import Tree
from memstory_reference.commands.memory_rows import Row, row_name, row_table
from memstory_reference.commands.terminal_text import cell, json_text

ASKED_ROWS = 10


def print_rows(rows: Sequence[Row], *, is_json: bool, for_none: str) -> None:
    """Print rows as JSON or as a table, or say that there are none."""
    if is_json:
        print_text(json_text(rows, indent=2))
    else:
        print_text(row_table(rows) if rows else for_none)


def print_log(rows: Sequence[Mapping[str, Tree]], *, is_json: bool) -> None:
    """Print what a log holds, a line each."""
    if is_json:
        print_text(json_text(list(rows), indent=2))
    elif rows:
        shown = [{name: cell(str(value)) for name, value in row.items()} for row in rows]
        print_text(tabulate(shown, headers="keys", tablefmt="simple", disable_numparse=True))
    else:
        print_text("Nothing is logged.")


def print_text(text: str) -> None:
    """Print a text with the end of its line."""
    sys.stdout.write(f"{text}\n")


def is_confirmed(rows: Sequence[Row]) -> bool:
    """Show what is about to be deleted, and ask."""
    for row in rows[:ASKED_ROWS]:
        sys.stderr.write(f"  {cell(row_name(row), 40)}  {cell(row['text'])}\n")
    if len(rows) > ASKED_ROWS:
        sys.stderr.write(f"  … and {len(rows) - ASKED_ROWS} more\n")
    return is_yes(f"Forget {'this' if len(rows) == 1 else f'these {len(rows)}'} for good? [y/N] ")


def is_yes(question: str) -> bool:
    """Ask on the terminal; everything but a yes is a no."""
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def write_new(file: Path, text: str) -> None:
    """Write a file that was not there, for its owner's eyes only; a half-written one does not stay."""
    try:
        written = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as problem:
        raise SetupError(f"{file} is there already; name a new file") from problem
    try:
        with os.fdopen(written, "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError:
        file.unlink(missing_ok=True)
        raise
