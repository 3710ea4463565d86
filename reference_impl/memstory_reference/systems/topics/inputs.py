"""What the memory takes from callers: every check happens before anything is embedded, read or written."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from memstory.contract.values import Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_mapping, checked_moment, checked_text, is_finite, short_repr
from memstory_reference.ports import Primitive

MAX_METADATA_KEYS = 50
MAX_METADATA_CHARACTERS = 10_000
_INT64 = 1 << 63

RESERVED = frozenset({"id", "is_recall", "owner", "reward", "rewarded", "topic", "topics", "type", "user_id"})
"""Metadata that only the memory itself writes."""

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,99}")


def clamped_reward(value: object) -> float:
    """Return a reward within [-1, 1]; what is not a finite number is refused.

    >>> clamped_reward(5)
    1.0
    """
    if not isinstance(value, (int, float)) or not is_finite(value):
        raise InputError(f"reward {short_repr(value)} is not allowed; allowed: finite numbers")
    return float(min(1.0, max(-1.0, value)))


def check_metadata(metadata: object) -> dict[str, Primitive]:
    """Return what callers may attach to an engram: flat, of simple types, no reserved keys; None is left out."""
    given = checked_mapping({} if metadata is None else metadata, "metadata")
    if len(given) > MAX_METADATA_KEYS:
        raise InputError(f"metadata has {len(given)} keys; at most {MAX_METADATA_KEYS}")
    checked = {key: _checked_value(key, value) for key, value in given.items() if value is not None}
    if "timestamp_utc" in checked:
        checked["timestamp_utc"] = stored_moment(checked["timestamp_utc"])
    return checked


def timestamp(moment: datetime) -> str:
    """Return `moment` as stored: UTC, microseconds always, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def stored_moment(value: object) -> str:
    """Return an ISO 8601 moment with an offset as stored, or raise InputError."""
    return timestamp(checked_moment(value, "timestamp_utc"))


def _checked_value(key: str, value: Json) -> Primitive:
    if not _KEY.fullmatch(key):
        raise InputError(f"metadata key {key!r:.80} is not allowed; allowed: a letter, then letters, digits, _ . -")
    if key in RESERVED:
        raise InputError(f"metadata key {key!r} is reserved; the memory itself writes {', '.join(sorted(RESERVED))}")
    if isinstance(value, str):
        return checked_text(value, f"metadata {key!r}", MAX_METADATA_CHARACTERS, may_be_blank=True)
    if isinstance(value, bool):
        return value
    if (isinstance(value, int) and -_INT64 <= value < _INT64) or (isinstance(value, float) and is_finite(value)):
        return value
    raise InputError(f"metadata {key!r} must be text, a boolean or a finite number, not {type(value).__name__}")
