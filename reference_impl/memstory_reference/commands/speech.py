"""Prints what is said in a conversation: an answer once, whether it comes in parts or whole."""

from __future__ import annotations

from memstory_reference.commands.terminal import Terminal
from memstory_reference.commands.terminal_text import printable


class Speech:
    """The voice of a conversation on a terminal; what is remembered cannot steer the terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._streamed = ""

    def part(self, text: str) -> None:
        """Print a part of an answer while the model is still writing it."""
        self._terminal.write(printable(text))
        self._streamed += text

    def aside(self, line: str) -> None:
        """Print a separate line: a tool call, an error, the answer to a command."""
        self._break()
        self._terminal.print(printable(line))

    def answer(self, text: str) -> None:
        """Print an answer, unless its parts just were."""
        is_said = bool(self._streamed.strip()) and self._streamed.strip() == text.strip()
        self._break()
        if not is_said:
            self._terminal.print(printable(text))

    def _break(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._terminal.print("")
        self._streamed = ""
