"""An exception that ended a case -> Failure: who has to act, a one-line reason, and the traceback separately."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from tempfile import gettempdir

from memstory.contract.errors import (
    NO_ROOM,
    MissingValue,
    NotSupported,
    SetupError,
    StoryError,
    TargetError,
    UnavailableError,
)
from memstory.results.recording import Failure, FailureKind
from memstory.targets.discovery import missing_vendor

_LONGEST_MESSAGE = 4_000
"""A request that nobody scripted or recorded comes with its prompt or with a difference."""

_LONGEST_DETAIL = 40_000
_OTHERS = (MissingValue, NotSupported, SetupError, StoryError, UnavailableError)
"""Errors whose message says all: the author of the story or the user of the machine acts, not who knows the code."""


def describe_error(error: BaseException) -> str:
    """Return the class and the message of an error; of a group of them, those of each that is in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(describe_error, error.exceptions))
    return f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")


def message_of(error: BaseException) -> str:
    """Return the message of an error, also of one that cannot say it."""
    try:
        return str(error).strip()
    except Exception as broken:  # noqa: BLE001  (an error of a broken backend: the missing message is reported)
        return f"(no message: it raises {type(broken).__name__} when it is asked for)"


def failure_of(error: Exception, target: str, step: Sequence[int] = ()) -> Failure:
    """Return why a case on `target` ended; the message of an error that nobody foresaw starts with its class."""
    if isinstance(error, ImportError):
        # Vendors are imported when a target is started or opened, so this is how a missing one shows itself.
        return Failure(kind="error", message=missing_vendor(target, error), step=tuple(step), detail=_traceback(error))
    kind: FailureKind = "error"
    if isinstance(error, NotSupported):
        kind = "unsupported"
    elif isinstance(error, StoryError):
        kind = "invalid"
    elif isinstance(error, MissingValue):
        kind = "failed"
    expected = isinstance(error, (*_OTHERS, TargetError))
    text = message_of(error)
    message = text if expected and text else describe_error(error)
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        message += f". Give the disk of {gettempdir()}, where workspaces are, room, or set TMPDIR to another folder"
    detail = None if isinstance(error, _OTHERS) else _traceback(error)
    return Failure(kind=kind, message=_shorten(message), step=tuple(step), detail=detail)


def _traceback(error: Exception) -> str:
    text = "".join(traceback.format_exception(error))
    if len(text) <= _LONGEST_DETAIL:
        return text
    # Where it began and what it came to; a message may be as long as a vendor likes.
    return f"{text[: _LONGEST_DETAIL // 2]}\n…\n{text[-_LONGEST_DETAIL // 2 :]}"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
