"""Any metadata in a store that takes only simple values, and back (M-20, MF-6, MF-7)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.ports import Primitive

REWORDED = "is_reworded"
"""Marks a fact whose id does not follow from its words any more."""

RESERVED = frozenset({"type", "created_at", "id", "owner", REWORDED})
MAX_CHARACTERS = 20_000
MAX_KEYS = 100

_MARK = "@json:"


def encode_metadata(metadata: Mapping[str, Tree]) -> dict[str, Primitive]:
    """Return metadata as the store keeps it: what is not simple becomes marked JSON, and so can still be filtered on.

    >>> encode_metadata({"field": "name", "tags": ["a"], "none": None})
    {'field': 'name', 'tags': '@json:["a"]', 'none': '@json:null'}
    """
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping, not {type(metadata).__name__}")
    if len(metadata) > MAX_KEYS:
        raise InputError(f"metadata has {len(metadata)} keys; at most {MAX_KEYS}")
    reserved = sorted(RESERVED & set(metadata))
    if reserved:
        raise InputError(
            f"metadata key {reserved[0]!r} is reserved; the memory itself writes {', '.join(sorted(RESERVED))}"
        )
    encoded = {key: _encode(key, value) for key, value in metadata.items()}
    size = sum(len(key) + len(str(value)) for key, value in encoded.items())
    if size > MAX_CHARACTERS:
        raise InputError(f"metadata has {size} characters; at most {MAX_CHARACTERS}")
    return encoded


def decode_metadata(stored: Mapping[str, Primitive | None]) -> dict[str, Tree]:
    """Return metadata as it was given, without what the memory itself wrote."""
    return {key: _decode(value) for key, value in stored.items() if key not in RESERVED}


def _encode(key: object, value: Tree) -> Primitive:
    if not isinstance(key, str) or not key:
        raise InputError(f"metadata key {key!r:.60} must be text")
    if isinstance(value, bool) or (isinstance(value, str) and not value.startswith(_MARK)):
        return value
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
        is_same = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata {key!r:.60} cannot be kept: {error}") from error
    if not is_same:
        # A tuple would come back as a list, and the key 1 as the text "1".
        raise InputError(f"metadata {key!r:.60} would come back changed; allowed: what JSON can hold")
    return _MARK + text


def _decode(value: Primitive | None) -> Tree:
    if isinstance(value, str) and value.startswith(_MARK):
        return json.loads(value.removeprefix(_MARK))
    return value
