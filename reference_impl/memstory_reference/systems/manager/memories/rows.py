"""Memories as rows: how they are written and read, which facts are the same, when one may expire (MF-3, MF-20)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from hashlib import blake2b
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from memstory.contract.values import Json, Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS, Limits, checked_memory, checked_owner, checked_text
from memstory_reference.ports import NewId, Primitive, Record
from memstory_reference.systems.manager.memories.memory import (
    Memory,
    MemoryType,
    expires_at,
    memory_type_of,
    stored_moment,
)

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


CONTEXT_KEY, SESSION_ID = "context_key", "session_id"
DEFAULT_SESSION = "default"
MAX_KEY_CHARACTERS = 500
CONTEXT_IDS = "context:"
"""How the ids of context entries begin; no other row may have such an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What is to be remembered; with a `key` it is a context entry, which takes the place of an older one.

    A fact belongs to no session: it is known in all of them.
    """

    content: str
    memory_type: MemoryType = MemoryType.FACT
    metadata: Mapping[str, Json] = field(default_factory=dict)
    session: str | None = None
    key: str | None = None


def make_memory(owner: str, new: object, now: datetime, new_id: NewId, limits: Limits = DEFAULT_LIMITS) -> Memory:
    """Return the memory that `new` becomes, or raise InputError."""
    if not isinstance(new, NewMemory):
        raise InputError(f"a new memory is expected, not {type(new).__name__}")
    content, memory_type = checked_memory(new.content, limits), memory_type_of(new.memory_type)
    session = checked_session(new.session)
    if not isinstance(new.metadata, Mapping):
        raise InputError(f"metadata must be a mapping, not {type(new.metadata).__name__}")
    metadata = dict(new.metadata)
    if new.key is not None:
        if memory_type is not MemoryType.CONTEXT:
            raise InputError(f"only a context has a key, a {memory_type} has none")
        key, session = checked_key(new.key), session or DEFAULT_SESSION
        metadata |= {CONTEXT_KEY: key, SESSION_ID: session}
        identifier = context_id(owner, session, key)
    elif memory_type is MemoryType.FACT:
        identifier = fact_id(content)
    else:
        identifier = new_id()
        metadata = ({SESSION_ID: session} if session else {}) | metadata
    return Memory(id=identifier, content=content, memory_type=memory_type, created_at=now, metadata=metadata)


def checked_key(key: object) -> str:
    """Return the key of a context entry."""
    return checked_text(key, "context key", MAX_KEY_CHARACTERS)


def checked_session(session: object) -> str | None:
    """Return the name of a session, or None where none is meant; a blank one is never a shared one."""
    return None if session is None else checked_owner(session, "session")


def context_id(owner: str, session: str, key: str) -> str:
    """Return the id of a context entry; no part can reach into another.

    >>> context_id("ann", "s1", "a:b")
    'context:ann:s1:a%3Ab'
    """
    return CONTEXT_IDS + ":".join(quote(part, safe="") for part in (owner, session, key))


def is_context_entry(owner: str, memory: Memory) -> bool:
    """Say whether a memory was written under a key; one whose metadata only say so was not."""
    session, key = memory.metadata.get(SESSION_ID), memory.metadata.get(CONTEXT_KEY)
    is_named = isinstance(session, str) and isinstance(key, str) and memory.id == context_id(owner, session, key)
    return is_named and memory.memory_type is MemoryType.CONTEXT


def fact_id(content: str) -> str:
    """Return the id of a fact: the same words are the same fact, however often they are said.

    >>> fact_id("Bees are  insects.") == fact_id(" Bees are insects."), len(fact_id("Bees are insects."))
    (True, 32)
    """
    return blake2b(" ".join(content.split()).encode(), digest_size=16).hexdigest()


def is_reworded(memory: Memory) -> bool:
    """Say whether a fact was changed under its id, or came with another one."""
    return memory.memory_type is MemoryType.FACT and memory.id != fact_id(memory.content)


def is_same_fact(one: str, other: str) -> bool:
    """Say whether two texts are the same fact, white space aside."""
    return one.split() == other.split()


def metadata_of(memory: Memory) -> dict[str, Primitive]:
    """Return all metadata of a memory's row, or raise InputError."""
    own: dict[str, Primitive] = {
        "type": memory.memory_type.value,
        "created_at": memory.created_at.isoformat(timespec="microseconds"),
    }
    if is_reworded(memory):
        own[REWORDED] = True
    return {**encode_metadata(memory.metadata), **own}


def memory_of(record: Record) -> Memory | None:
    """Return a stored row as a memory; None for a row that is not one of ours to read."""
    try:
        created_at = stored_moment(record.metadata.get("created_at"))
        memory_type = memory_type_of(record.metadata.get("type"))
        metadata = decode_metadata(record.metadata)
    except (InputError, ValueError):
        return None
    return Memory(id=record.id, content=record.text, memory_type=memory_type, created_at=created_at, metadata=metadata)


def record_of(memory: Memory, vector: NDArray[np.float32]) -> Record:
    """Return the row of a memory."""
    return Record(id=memory.id, text=memory.content, metadata=metadata_of(memory), vector=vector)


def conditions_of(where: Mapping[str, Json] | None, memory_type: MemoryType | None) -> dict[str, Primitive] | None:
    """Return what rows must have to be of this type, with this metadata."""
    conditions = encode_metadata({} if where is None else where)
    if memory_type is not None:
        conditions["type"] = memory_type_of(memory_type).value
    return conditions or None


def keep_bindings(old: Memory, metadata: Mapping[str, Json]) -> dict[str, Json]:
    """Return new metadata with what binds a context entry to its key and session."""
    bound = {key: old.metadata[key] for key in (CONTEXT_KEY, SESSION_ID) if key in old.metadata}
    return {**metadata, **bound} if old.memory_type is MemoryType.CONTEXT else dict(metadata)


NEVER = datetime.max.replace(tzinfo=UTC)


class Deadlines:
    """The earliest expiry of each owner whose rows were read once; it relies on hearing of every write."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._earliest: dict[str, datetime] = {}

    def is_due(self, owner: str, now: datetime) -> bool:
        """Say whether something of `owner` may be expired; an owner whose rows were never read may have anything."""
        return owner not in self._earliest or now > self._earliest[owner]

    def begin(self, owner: str) -> None:
        """Note that the rows of `owner` are being read now; what is written meanwhile is noted by `note`."""
        self._earliest[owner] = NEVER

    def forget(self, owner: str) -> None:
        """Note that nothing is known of `owner`: its rows could not be read."""
        self._earliest.pop(owner, None)

    def note(self, owner: str, memories: Iterable[Memory]) -> None:
        """Take the expiries of memories into account; does nothing for an owner whose rows were never read."""
        if owner in self._earliest:
            ends = (expires_at(memory.memory_type, memory.created_at, self._zone) for memory in memories)
            self._earliest[owner] = min([self._earliest[owner], *(end for end in ends if end is not None)])


class KnownFacts:
    """Where each owner's changed facts are; a row that it names may have changed or gone since, and is looked at."""

    def __init__(self) -> None:
        self._changed: dict[str, dict[str, str]] = {}

    def note(self, owner: str, memories: Iterable[Memory]) -> None:
        """Take memories into account that were read or are being written."""
        for memory in memories:
            if is_reworded(memory):
                self._changed.setdefault(owner, {})[fact_id(memory.content)] = memory.id

    def ids(self, owner: str, memory: Memory) -> list[str]:
        """Return the ids under which a memory may be stored already; a fact under more than its own."""
        if memory.memory_type is not MemoryType.FACT:
            return [memory.id]
        words = fact_id(memory.content)
        changed = self._changed.get(owner, {}).get(words)
        return list(dict.fromkeys([memory.id, words, *([changed] if changed else [])]))


def same_fact(memory: Memory, others: Iterable[Memory | None]) -> Memory | None:
    """Return the one of `others` that says the same fact."""
    if memory.memory_type is not MemoryType.FACT:
        return None
    facts = (one for one in others if one and one.memory_type is MemoryType.FACT)
    return next((one for one in facts if is_same_fact(one.content, memory.content)), None)
