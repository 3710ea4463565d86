"""What the reference wrote to its log, for `inspect: log`."""

from __future__ import annotations

import logging
from collections import deque

from memstory.contract.values import Tree

ROOT = "memstory_reference"
KEPT_LINES = 1_000


class WarningLog(logging.Handler):
    """Keeps warnings and worse of the whole package while it is attached."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self._lines: deque[dict[str, Tree]] = deque(maxlen=KEPT_LINES)
        self._number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._number += 1
        line = {"level": record.levelname, "logger": record.name, "message": record.getMessage()}
        self._lines.append({"number": self._number, **line})

    def attach(self) -> None:
        """Begin to listen."""
        logging.getLogger(ROOT).addHandler(self)

    def detach(self) -> None:
        """Listen no more."""
        logging.getLogger(ROOT).removeHandler(self)

    def data(self, since: int = 0) -> list[dict[str, Tree]]:
        """Return the lines after line number `since`, oldest first."""
        return [line for line in self._lines if line["number"] > since]
