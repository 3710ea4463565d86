"""The terminal, or the pipe in its place: what is asked and printed there, and what must not steer it."""

from __future__ import annotations

import io
import json
import re
from typing import TextIO

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


class Terminal:
    """Asks for lines, and shows what is said; nothing that is remembered can steer it.

    What is typed can be edited and called back where readline is there.
    """

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._streamed = ""
        self.is_interactive = stdin.isatty() and stdout.isatty()
        for stream, errors in ((stdin, "replace"), (stdout, "backslashreplace")):
            # What cannot be read or shown in this terminal's encoding ends no conversation.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=errors)
        if self.is_interactive:
            _enable_editing()

    def ask(self, prompt: str) -> str | None:
        """Return the next line, None at the end of the input; a pipe is shown no prompt."""
        try:
            if self.is_interactive:
                return input(prompt)
        except EOFError:
            self._write("\n")
            return None
        line = self._stdin.readline()
        return line.rstrip("\r\n") if line else None

    def part(self, text: str) -> None:
        """Print a part of an answer while the model is still writing it."""
        self._write(printable(text))
        self._streamed += text

    def aside(self, line: str) -> None:
        """Print a separate line: a tool call, an error, the answer to a command."""
        self._break()
        self._write(f"{printable(line)}\n")

    def answer(self, text: str) -> None:
        """Print an answer, unless its parts just were."""
        is_said = bool(self._streamed.strip()) and self._streamed.strip() == text.strip()
        self._break()
        if not is_said:
            self._write(f"{printable(text)}\n")

    def _break(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._write("\n")
        self._streamed = ""

    def _write(self, text: str) -> None:
        self._stdout.write(text)
        self._stdout.flush()


def _enable_editing() -> None:
    try:
        import readline  # noqa: F401, PLC0415  (importing it is what enables it; Windows has none)
    except ImportError:
        return
