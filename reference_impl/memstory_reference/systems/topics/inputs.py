"""What the memory takes from callers: every check happens before anything is embedded, read or written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from memstory_reference.errors import InputError
from memstory_reference.ports import Json, Primitive

MAX_CONTENT_CHARACTERS = 100_000
MAX_TOP_K = 1_000
MAX_OWNER_CHARACTERS = 200
MAX_METADATA_KEYS = 50
MAX_METADATA_CHARACTERS = 10_000
_INT64 = 1 << 63

RESERVED = frozenset({"id", "is_recall", "owner", "reward", "topic", "type", "user_id"})
"""Metadata that only the memory itself writes."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,99}")


def check_owner(owner: object) -> str:
    """Return `owner` if it can own memories; a missing owner is never a shared one."""
    if not isinstance(owner, str) or not owner.strip() or len(owner) > MAX_OWNER_CHARACTERS or _CONTROL.search(owner):
        raise InputError(
            f"owner {owner!r:.80} is not allowed; allowed: 1 to {MAX_OWNER_CHARACTERS} characters on one line"
        )
    return check_text(owner, "owner")


def check_text(text: object, what: str, limit: int = MAX_CONTENT_CHARACTERS) -> str:
    """Return `text` if it is text that says something and can be stored."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {type(text).__name__}")
    if not text.strip():
        raise InputError(f"{what} is blank")
    return _storable(text, what, limit)


def check_top_k(top_k: object) -> int:
    """Return `top_k` if it is a number of hits."""
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_TOP_K:
        raise InputError(f"top_k {top_k!r:.40} is not allowed; allowed: whole numbers from 1 to {MAX_TOP_K}")
    return top_k


def check_cosine(value: object, what: str) -> float:
    """Return `value` if it can be compared with a cosine or a reward: finite, from -1 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1 <= value <= 1:
        raise InputError(f"{what} {value!r:.40} is not allowed; allowed: numbers from -1 to 1")
    return float(value)


def clamped_reward(value: object) -> float:
    """Return a reward within [-1, 1]; what is no finite number is refused.

    >>> clamped_reward(5)
    1.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"reward {value!r:.40} is not allowed; allowed: finite numbers")
    return float(min(1.0, max(-1.0, value)))


def check_metadata(metadata: Mapping[str, Json]) -> dict[str, Primitive]:
    """Return what callers may attach to an engram: flat, of simple types, no reserved keys; None is left out."""
    if len(metadata) > MAX_METADATA_KEYS:
        raise InputError(f"metadata has {len(metadata)} keys; at most {MAX_METADATA_KEYS}")
    checked = {key: _checked_value(key, value) for key, value in metadata.items() if value is not None}
    if "timestamp_utc" in checked:
        checked["timestamp_utc"] = in_utc(checked["timestamp_utc"])
    return checked


def timestamp(moment: datetime) -> str:
    """Return `moment` as stored: UTC, microseconds always, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def in_utc(value: object) -> str:
    """Return an ISO 8601 moment with an offset as stored, or raise InputError."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(f"timestamp_utc {value!r:.40} is not allowed; allowed: ISO 8601 with an offset or Z")
    return timestamp(moment)


def _checked_value(key: object, value: Json) -> Primitive:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InputError(f"metadata key {key!r:.80} is not allowed; allowed: a letter, then letters, digits, _ . -")
    if key in RESERVED:
        raise InputError(f"metadata key {key!r} is reserved; the memory itself writes {', '.join(sorted(RESERVED))}")
    if isinstance(value, str):
        return _storable(value, f"metadata {key!r}", MAX_METADATA_CHARACTERS)
    if isinstance(value, bool):
        return value
    if (isinstance(value, int) and -_INT64 <= value < _INT64) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(f"metadata {key!r} must be text, a boolean or a finite number, not {type(value).__name__}")


def _storable(text: str, what: str, limit: int) -> str:
    if len(text) > limit:
        raise InputError(f"{what} has {len(text)} characters; at most {limit}")
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InputError(f"{what} holds a NUL or half a surrogate pair, which cannot be stored")
    return text
