"""What can go wrong, by who has to act.

MemstoryError
├── StoryError      the story is wrong: its author acts          -> outcome `invalid`
├── MissingValue    the memory answered, but without what the story needs next -> outcome `failed`
├── TargetError     the target broke: its maintainer acts        -> outcome `error`
├── SetupError      the machine lacks something: its user acts   -> outcome `error`, or exit code 4 at start
├── UnavailableError  what is outside does not answer now: its operator acts -> outcome `error`
├── NotSupported    the target cannot do this at all             -> outcome `unsupported`
└── Refused         the memory declined, on purpose, in words    -> a result that `expect.error` judges
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Numbers of an OSError: a disk, a quota or a limit on files takes no more."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place in a text file; `line` and `column` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class MemstoryError(Exception):
    """The root of every error that memstory raises on purpose."""


class StoryError(MemstoryError):
    """A story that cannot be run as written; its message starts with `file:line:col` if the place is known."""

    def __init__(self, message: str, mark: Mark | None = None) -> None:
        super().__init__(f"{mark}: {message}" if mark else message)
        self.message = message
        self.mark = mark


class TargetError(MemstoryError):
    """A target that broke instead of answering."""


class MissingValue(MemstoryError):  # noqa: N818  (an answer like any other, judged as one that is not enough)
    """A memory that answered, but not with the value that a later step of the story needs."""


class SetupError(MemstoryError):
    """A machine on which the run cannot start; the message says what to do."""


class UnavailableError(MemstoryError):
    """A service outside, such as a model's server, that does not answer now; the message says what to do."""


class NotSupported(MemstoryError):  # noqa: N818  (the design's word: a missing capability is not an error)
    """A target that lacks `capability`, or data that this machine does not have."""

    def __init__(self, capability: str, reason: str | None = None) -> None:
        super().__init__(reason or f"this memory does not support '{capability}'")
        self.capability = capability


class Refused(MemstoryError):  # noqa: N818  (a legitimate answer of a memory, judged like any other)
    """An operation that the memory declined on purpose: bad input, an unknown name, another owner's record."""
