"""Remembered text made safe to print: what was remembered must not steer the terminal that shows it."""

from __future__ import annotations

import json
import re

from memstory.contract.values import Json
from memstory_reference.text.lines import one_line

CELL_CHARACTERS = 80

# Escape sequences start with a control character; the others turn the order of what is read.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return `text` with its lines, and a mark for each character that would steer the terminal.

    >>> printable("red \x1b[31m\nnext")
    'red �[31m\nnext'
    """
    # A carriage return goes: it would let a line write over itself, and streamed text may end between \r and \n.
    return _STEERING.sub("\ufffd", text.replace("\r", ""))


def cell(text: str, limit: int = CELL_CHARACTERS) -> str:
    r"""Return `text` on one line of at most `limit` characters.

    >>> cell("Q: Who?\nA: Ana, of course.", 12)
    'Q: Who? A: …'
    """
    line = one_line(printable(text))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def json_text(value: Json, *, indent: int | None = None) -> str:
    r"""Return `value` as JSON in which every script stays readable and no character steers the terminal.

    >>> print(json_text({"name": "Zoë\x9b31m"}))
    {"name": "Zoë\u009b31m"}
    """
    written = json.dumps(value, ensure_ascii=False, indent=indent)
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in written)
