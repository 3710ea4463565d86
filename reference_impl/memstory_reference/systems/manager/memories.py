"""Memories of three types: when they expire, their rows, which are nearest, which are the same, and older rows.

See M-02 to M-05, M-16, MF-2 to MF-4, MF-16, MF-19 and MF-20.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING
from urllib.parse import quote

from memstory.contract.values import Item, Json, Scope, Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    DEFAULT_LIMITS,
    Limits,
    checked_choice,
    checked_memory,
    checked_moment,
    checked_owner,
    checked_text,
)
from memstory_reference.ports import NewId, Primitive, Record, VectorIndex
from memstory_reference.text.sentences import as_said, sentences
from memstory_reference.text.words import plain_words, spaced_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONVERSATION_DAYS = 30
YEARS = range(MINYEAR, MAXYEAR + 1)
"""A moment at either end could not be moved into another zone, or to its expiry."""


class MemoryType(StrEnum):
    """How long a memory lives: 30 days, forever, or to the end of its day."""

    CONVERSATION = "conversation"
    FACT = "fact"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One memory; `created_at` is aware UTC."""

    id: str
    content: str
    memory_type: MemoryType
    created_at: datetime
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """A memory with its cosine to the query, cut to [0, 1]."""

    memory: Memory
    score: float


def memory_type_of(name: object) -> MemoryType:
    """Return the type of that name, or raise InputError that lists the three."""
    return MemoryType(checked_choice(name, "memory_type", list(MemoryType)))


def expires_at(memory_type: MemoryType, created_at: datetime, zone: tzinfo = UTC) -> datetime | None:
    """Return the last moment at which a memory is alive, in UTC; None for a fact.

    A context lives to the last microsecond of the day on which it was made, as `zone` reckons days.

    >>> expires_at(MemoryType.CONTEXT, datetime(2026, 5, 1, 10, tzinfo=UTC)).isoformat()
    '2026-05-01T23:59:59.999999+00:00'
    """
    match memory_type:
        case MemoryType.CONVERSATION:
            return created_at + timedelta(days=CONVERSATION_DAYS)
        case MemoryType.CONTEXT:
            # From the next midnight back: in some zones the clocks change at midnight, and 23:59 comes twice.
            tomorrow = created_at.astimezone(zone).date() + timedelta(days=1)
            return datetime.combine(tomorrow, time.min, zone).astimezone(UTC) - timedelta(microseconds=1)
        case MemoryType.FACT:
            return None


def is_expired(memory: Memory, now: datetime, zone: tzinfo = UTC) -> bool:
    """Say whether a memory is over: the only rule, for reading and for cleaning up alike."""
    last = expires_at(memory.memory_type, memory.created_at, zone)
    return last is not None and now > last


def stored_moment(text: object) -> datetime:
    """Return a stored timestamp as aware UTC; one without a zone is from an older version and meant UTC."""
    moment = checked_moment(text, "created_at", UTC)
    if not YEARS.start < moment.year < YEARS.stop - 1:
        raise InputError(f"created_at {text!r:.60} is not allowed; allowed: the years 2 to 9998")
    return moment


def score_of(similarity: float) -> float:
    """Return a cosine as a score: cut to [0, 1], for opposites are no more than unrelated (M-08, MF-16).

    >>> [round(score_of(1 - distance), 6) for distance in (0, 0.4, 0.7, 2.0)]
    [1.0, 0.6, 0.3, 0.0]
    """
    return min(1.0, max(0.0, similarity))


_TURN = re.compile(r"\AUser: (?P<said>.*?)(?:\nAssistant: .*)?\Z", re.DOTALL)
_LEAST_WORDS = 3
"""Fewer words say nothing by themselves, and stand in many texts."""


def statements(memory: Memory) -> list[str]:
    """Return what a memory states, as plain words: of a turn what the user told, questions aside."""
    turn = _TURN.match(memory.content) if memory.memory_type is MemoryType.CONVERSATION else None
    told = (
        [one for one in sentences(turn["said"]) if not one.rstrip().endswith("?")]
        if turn
        else [as_said(memory.content)]
    )
    return [spaced_words(one) for one in told if len(plain_words(one)) >= _LEAST_WORDS]


def states(text: str, stated: Iterable[str]) -> bool:
    """Say whether a text holds one of the statements, at the limits of words.

    >>> states('You told me: "My name is Alex".', [" my name is alex "])
    True
    """
    plain = spaced_words(text)
    return any(one in plain for one in stated)


def repeating_turns(memory: Memory, others: Iterable[Memory]) -> list[Memory]:
    """Return the turns that say what `memory` states."""
    stated = statements(memory)
    turns = (one for one in others if one.id != memory.id and one.memory_type is MemoryType.CONVERSATION)
    return [one for one in turns if states(one.content, stated)]


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


def make_memory(item: Item, scope: Scope, now: datetime, new_id: NewId, limits: Limits = DEFAULT_LIMITS) -> Memory:
    """Return the memory that an item becomes: with a key a context entry, else a fact unless it says its kind.

    A context entry takes the place of an older one of its key. A fact belongs to no session: it is known in all.
    """
    default = MemoryType.FACT if item.key is None else MemoryType.CONTEXT
    content = checked_memory(item.text, limits)
    memory_type = default if item.kind is None else memory_type_of(item.kind)
    session = checked_session(scope.session)
    if not isinstance(item.metadata, Mapping):
        raise InputError(f"metadata must be a mapping, not {type(item.metadata).__name__}")
    metadata = dict(item.metadata)
    if item.key is not None:
        if memory_type is not MemoryType.CONTEXT:
            raise InputError(f"only a context has a key, a {memory_type} has none")
        key, session = checked_key(item.key), session or DEFAULT_SESSION
        metadata |= {CONTEXT_KEY: key, SESSION_ID: session}
        identifier = context_id(scope.user, session, key)
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
    """Return the one of `others` that says the same fact, white space aside."""
    if memory.memory_type is not MemoryType.FACT:
        return None
    facts = (one for one in others if one and one.memory_type is MemoryType.FACT)
    return next((one for one in facts if one.content.split() == memory.content.split()), None)


IsWanted = Callable[[Memory], bool]


async def nearest_memories(
    index: VectorIndex,
    vector: NDArray[np.float32],
    *,
    limit: int,
    floor: float,
    conditions: Mapping[str, Primitive] | None,
    is_wanted: IsWanted,
    ahead: int = 0,
) -> list[SearchResult]:
    """Return up to `limit` wanted memories at or above `floor`, best first, of equal scores the newer first.

    If `ahead` is not 0, so many rows are looked at first without `conditions`, which `is_wanted` must then imply.
    """
    if ahead:
        wanted, lowest = await _look(index, vector, ahead, None, is_wanted)
        if len(wanted) >= limit or lowest < floor:
            return _best(wanted, limit, floor)
    fetch = limit
    while True:
        wanted, lowest = await _look(index, vector, fetch, conditions, is_wanted)
        if len(wanted) >= limit or lowest < floor:
            return _best(wanted, limit, floor)
        # What is not wanted must take no place: the search goes wider until it has met the limit or the floor.
        fetch *= 2


async def _look(
    index: VectorIndex,
    vector: NDArray[np.float32],
    fetch: int,
    conditions: Mapping[str, Primitive] | None,
    is_wanted: IsWanted,
) -> tuple[Sequence[SearchResult], float]:
    """Return what is wanted of the nearest rows, and the score that no other row can exceed."""
    matches = await index.query(vector, fetch, conditions)
    wanted = [
        SearchResult(memory=memory, score=score_of(match.similarity))
        for match in matches
        if (memory := memory_of(match.record)) and is_wanted(memory)
    ]
    # Where there are no other rows that is below any floor.
    return wanted, -math.inf if len(matches) < fetch else score_of(matches[-1].similarity)


def _best(results: Sequence[SearchResult], limit: int, floor: float) -> list[SearchResult]:
    high = (result for result in results if result.score >= floor)
    return sorted(high, key=lambda result: (-result.score, -result.memory.created_at.timestamp()))[:limit]


CATEGORY, PROFILE, FIELD = "category", "user_profile", "field"


def newest_of_each_field_first(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Return the results, statements of one profile field in their places by age, the newest first.

    The older ones stay: a field such as the interests may hold several.
    """
    newest: dict[str, list[SearchResult]] = {}
    for result in sorted(results, key=lambda one: one.memory.created_at):
        if (field := field_of(result)) is not None:
            newest.setdefault(field, []).append(result)
    fields = (field_of(result) for result in results)
    return [result if field is None else newest[field].pop() for result, field in zip(results, fields, strict=True)]


def field_of(result: SearchResult) -> str | None:
    """Return the profile field that a fact states, if it states one."""
    metadata = result.memory.metadata
    field = metadata.get(FIELD)
    is_stated = result.memory.memory_type is MemoryType.FACT and metadata.get(CATEGORY) == PROFILE
    return field if is_stated and isinstance(field, str) else None


TYPE_OF_V1 = {
    "conversation": MemoryType.CONVERSATION,
    "observation": MemoryType.CONVERSATION,
    "fact": MemoryType.FACT,
    "preference": MemoryType.FACT,
    "event": MemoryType.CONTEXT,
    "task": MemoryType.CONTEXT,
}


def migrate_rows(
    rows: Iterable[Mapping[str, Tree]], limits: Limits = DEFAULT_LIMITS
) -> tuple[list[Memory], list[str], list[str]]:
    """Return old rows `{id, content, type, created_at, metadata}` as memories, and what is to be said of others.

    First which were skipped, because they cannot be read, then warnings; both name the rows by id.
    """
    memories, skipped, warnings = list[Memory](), list[str](), list[str]()
    for row in rows:
        name = str(row.get("id", "(no id)")) if isinstance(row, Mapping) else f"(no row) {row!r:.40}"
        try:
            memory = _migrated_row(row, limits)
        except InputError as error:
            skipped.append(f"{name}: {error}")
            continue
        memories.append(memory)
        if memory.memory_type is MemoryType.CONTEXT:
            warnings.append(f"{name}: {row['type']} became context, and ends with the day on which it was made")
    return memories, skipped, warnings


def _migrated_row(row: Mapping[str, Tree], limits: Limits) -> Memory:
    if not isinstance(row, Mapping):
        raise InputError("a row has the keys id, content, type, created_at, metadata")
    old_type = str(row.get("type", "")).lower()
    if old_type not in TYPE_OF_V1:
        raise InputError(f"type {row.get('type')!r:.60} is none of {', '.join(TYPE_OF_V1)}")
    content, identifier = checked_memory(row.get("content"), limits), row.get("id")
    if not isinstance(identifier, str) or not identifier.strip():
        raise InputError("id is missing")
    if identifier.startswith(CONTEXT_IDS):
        raise InputError(f"ids that begin with {CONTEXT_IDS!r} are the memory's own")
    metadata = row.get("metadata") or {}
    encode_metadata(metadata)
    return Memory(
        id=identifier,
        content=content,
        memory_type=TYPE_OF_V1[old_type],
        created_at=stored_moment(row.get("created_at")),
        metadata=dict(metadata),
    )
