"""What a payload may be: a JSON object of bounded size. Every delivery gets a copy, as it would over a wire."""

from __future__ import annotations

import json
from collections.abc import Mapping

from memstory.contract.values import Json
from memstory_reference.errors import InputError

MAX_PAYLOAD_CHARACTERS = 8 << 20
"""An answer travels with the results of all its tool calls."""


def pack(payload: object) -> str:
    """Return `payload` as JSON text, or raise InputError if it is not a JSON object of text keys or is too large."""
    if not isinstance(payload, Mapping):
        raise InputError(f"bus: a payload is a JSON object, not {type(payload).__name__}")
    try:
        packed = json.dumps(dict(payload), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"bus: the payload is not JSON: {error}") from error
    if len(packed) > MAX_PAYLOAD_CHARACTERS:
        raise InputError(f"bus: the payload has {len(packed)} characters of JSON; at most {MAX_PAYLOAD_CHARACTERS}")
    return packed


def unpack(packed: str) -> dict[str, Json]:
    """Return a fresh copy of what was packed.

    >>> unpack(pack({"answer": 42}))
    {'answer': 42}
    """
    payload: dict[str, Json] = json.loads(packed)
    return payload
