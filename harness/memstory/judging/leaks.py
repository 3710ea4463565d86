"""Leaks: a returned memory that only another user stored is a fault, even if the story does not check for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from memstory.contract.target import Tree
from memstory.language.words import WORDS
from memstory.language.words.memories import hits_of
from memstory.results.recording import StepRecord

Owners: TypeAlias = Mapping[tuple[str, str], frozenset[str]]
"""Who was acknowledged a memory, by its id and text: some memories make the same id of the same text."""

_WRITES = ("add", "update")


def owners_of(records: Iterable[StepRecord]) -> Owners:
    """Return whose each memory is, as the receipts have it."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for record in records:
        for item in _items(record):
            if item.get("id") is not None:
                memory = item["id"], item["text"]
                found[memory] = found.get(memory, frozenset()) | {record.user}
    return found


def strangers(record: StepRecord, owners: Owners) -> list[str]:
    """Return the texts among the hits of `record` that only other users were acknowledged."""
    if record.error is not None or "hits" not in WORDS[record.op].results:
        return []
    named = ((hit.get("id"), str(hit.get("text"))) for hit in hits_of(record))
    return [text for id_, text in named if record.user not in owners.get((id_, text), {record.user})]


def _items(record: StepRecord) -> Iterable[Mapping[str, Tree]]:
    if record.op not in _WRITES or not isinstance(record.result, Mapping):
        return ()
    items: Iterable[Mapping[str, Tree]] = record.result.get("items") or ()
    return items
