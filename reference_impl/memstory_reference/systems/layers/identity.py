"""Whose memory it is, and how a session is named in what is kept (seed 003, C-19, C-20, C-28, CF-3, CF-12)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memstory.contract.values import Json
from memstory_reference.errors import InputError

MAX_ID_CHARACTERS = 512
USER, SESSION = "user", "session"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSession:
    """For whom and in which session something happens, both as they are stored."""

    owner: str
    session: str


class OwnerMissingError(InputError, ValueError):
    """Neither a user nor a session: nobody's memory is written to a place that all share."""


def resolve_owner_id(state: Mapping[str, Json], key: bytes) -> str:
    """Return `user:<id>` of `state["user_id"]`, else `session:<hash>` of `session_id`.

    The two never share a namespace. A blank id counts as missing; `key` is the store's own.

    Raises:
        OwnerMissingError: both are missing.
    """
    user = checked_id(state.get("user_id"), "user_id")
    if user is not None:
        return f"{USER}:{user}"
    session = checked_id(state.get("session_id"), "session_id")
    if session is not None:
        return f"{SESSION}:{hash_session_id(session, key)}"
    raise OwnerMissingError("a memory belongs to somebody: the state has neither 'user_id' nor 'session_id'")


def checked_id(value: Json, name: str) -> str | None:
    """Return an id as it was given, None if it is missing or blank: two ids that look alike are two people's."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, not {type(value).__name__}")
    if not value.strip():
        return None
    if len(value) > MAX_ID_CHARACTERS or not value.isprintable():
        raise InputError(f"{name} must have at most {MAX_ID_CHARACTERS} printable characters")
    return value


def hash_session_id(session_id: str, key: bytes) -> str:
    """Return 64 hexadecimal digits that only the holder of `key` can tie to the session.

    >>> hash_session_id("t1", b"k") == hash_session_id("t1", b"other")
    False
    """
    return hmac.digest(key, session_id.encode("utf-8", "surrogatepass"), "sha256").hex()


def iso_now(now: datetime) -> str:
    """Return a moment of the injected clock as it is stored: UTC, microseconds, sortable as text.

    >>> iso_now(datetime(2026, 1, 1, 12, tzinfo=UTC))
    '2026-01-01T12:00:00.000000+00:00'
    """
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
