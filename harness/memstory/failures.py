"""An exception that ended a case -> Failure: who must act, in a short line, with the traceback apart."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from memstory.discovery import missing_vendor
from memstory.errors import NotSupported, SetupError, StoryError, TargetError
from memstory.recording import Failure, FailureKind

_LONGEST_MESSAGE = 4_000
"""A request that nobody scripted or recorded comes with its prompt or with a difference."""


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
    expected = isinstance(error, (NotSupported, StoryError, SetupError, TargetError))
    text = str(error).strip()
    message = text if expected and text else f"{type(error).__name__}: {text}".removesuffix(": ")
    detail = None if isinstance(error, (NotSupported, StoryError)) else _traceback(error)
    return Failure(kind=kind, message=_shorten(message), step=tuple(step), detail=detail)


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"
