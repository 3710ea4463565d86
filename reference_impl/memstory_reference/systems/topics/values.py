"""Between the harness's values and the topics memory's: items, hits, receipts, tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memstory.contract.target import Hit, Item, ReceiptItem, Scope, Tree
from memstory_reference.errors import InputError
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry, effective_score
from memstory_reference.systems.topics.inputs import RESERVED
from memstory_reference.systems.topics.memory_service import Engram, Fact
from memstory_reference.systems.topics.topic_keys import lookup_key
from memstory_reference.text.secret_guard import left_out

TOPIC, EPISODIC = KINDS = ("topic", "episodic")


def checked_kinds(kinds: Iterable[str]) -> frozenset[str]:
    """Return the kinds that are meant, all for none; an unknown one is refused."""
    asked = frozenset(kinds) or frozenset(KINDS)
    for kind in sorted(asked - frozenset(KINDS)):
        raise InputError(f"there is no kind {kind!r:.80}; allowed: {', '.join(KINDS)}")
    return asked


def is_topic(item: Item) -> bool:
    """Say whether an item is a standing fact: it has a key. Key and kind must agree."""
    if item.kind is not None:
        checked_kinds([item.kind])
    if (item.key is None) == (item.kind == TOPIC) and item.kind is not None:
        raise InputError("a topic has a key, an engram has none")
    return item.key is not None


def fact_of(item: Item) -> Fact:
    """Return a standing fact."""
    if item.metadata:
        raise InputError("a topic takes no metadata; leave out the key to store an engram")
    return str(item.key), item.text


def engram_of(item: Item, scope: Scope) -> Engram:
    """Return an engram, of the scope's session unless the item names its own."""
    session = {"session_id": scope.session} if scope.session else {}
    return item.text, {**session, **item.metadata}


def entry_of_row(row: Mapping[str, Tree]) -> tuple[bool, tuple[str, Tree]]:
    """Return whether an exported row is a fact, and the fact or the engram; ids and ratings are new."""
    if row.get("key") is not None:
        return True, (str(row["key"]), row["text"])
    attached = {name: value for name, value in (row.get("metadata") or {}).items() if name not in RESERVED}
    moment = {} if row.get("created_at") is None else {"timestamp_utc": row["created_at"]}
    return False, (row["text"], {**attached, **moment})


def where_of(scope: Scope, where: Mapping[str, Tree] | None = None) -> dict[str, Tree]:
    """Return the filter of a scope: one session's engrams, where the scope names a session."""
    return {**(where or {}), **({"session_id": scope.session} if scope.session else {})}


def kind_of(entry: TopicEntry | EngramEntry) -> str:
    """Return the kind of an entry."""
    return TOPIC if isinstance(entry, TopicEntry) else EPISODIC


def stored_item(entry_id: str, item: Item, *, is_known: bool) -> ReceiptItem:
    """Return what happened to an added item; a topic that was known has a new value."""
    return ReceiptItem(
        id=entry_id,
        text=item.text,
        outcome="updated" if is_known else "stored",
        reason=left_out(item.text),
        kind=EPISODIC if item.key is None else TOPIC,
        key=None if item.key is None else lookup_key(item.key),
    )


def updated_item(entry: TopicEntry | EngramEntry, item: Item) -> ReceiptItem:
    """Return what happened to an entry that was rewritten."""
    key = entry.topic if isinstance(entry, TopicEntry) else None
    return ReceiptItem(
        id=entry.id, text=item.text, outcome="updated", reason=left_out(item.text), kind=kind_of(entry), key=key
    )


def listed_hit(entry: TopicEntry | EngramEntry) -> Hit:
    """Return an entry that was looked up or listed; it has no score."""
    if isinstance(entry, TopicEntry):
        return Hit(id=entry.id, text=entry.content, kind=TOPIC, key=entry.topic, created_at=entry.timestamp_utc)
    return Hit(id=entry.id, text=entry.content, kind=EPISODIC, created_at=_created_at(entry), metadata=entry.metadata)


def found_hit(found: FoundEngram) -> Hit:
    """Return an engram that was found by meaning; `explain` says how it came to its place."""
    return Hit(
        id=found.id,
        text=found.content,
        score=found.score,
        kind=EPISODIC,
        created_at=_created_at(found),
        metadata=found.metadata,
        explain={
            "similarity": found.score,
            "reward": found.metadata.get("reward", 0.0),
            "is_recall": found.metadata.get("is_recall", False),
            "rank_score": effective_score(found),
        },
    )


def _created_at(entry: EngramEntry | FoundEngram) -> str | None:
    return str(entry.metadata.get("timestamp_utc", "")) or None
