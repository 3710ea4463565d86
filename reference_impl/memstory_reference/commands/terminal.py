"""The terminal, or the pipe in its place, that a command talks to."""

from __future__ import annotations

import io
from typing import TextIO


class Terminal:
    """Asks for lines and prints them; what is typed can be edited and called back where readline is there."""

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._stdin = stdin
        self._stdout = stdout
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
            self.print("")
            return None
        line = self._stdin.readline()
        return line.rstrip("\r\n") if line else None

    def print(self, line: str) -> None:
        """Print a line at once."""
        self.write(f"{line}\n")

    def write(self, part: str) -> None:
        """Print a part of a line at once."""
        self._stdout.write(part)
        self._stdout.flush()


def _enable_editing() -> None:
    try:
        import readline  # noqa: F401, PLC0415  (importing it is what enables it; Windows has none)
    except ImportError:
        return
