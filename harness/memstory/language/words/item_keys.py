"""The keys of an item besides its text, each with the capability that it requires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from memstory.contract.target import Capability, Tree
from memstory.language.words.parts import Schema, choice, free, text

ROLES: Final = ("user", "assistant", "tool", "web")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKey:
    """One key of an item: its grammar, and what a target is able to do that takes it."""

    grammar: Schema
    capability: Capability
    able: str


ITEM_KEYS: Final[Mapping[str, ItemKey]] = {
    "key": ItemKey(
        grammar=text("The key to find it by."),
        capability="add.key",
        able="remembers a text under a key that the caller chose",
    ),
    "metadata": ItemKey(
        grammar=free("What else is kept with it."),
        capability="add.metadata",
        able="takes whatever is known of a text beside it, such as speaker, session and said_at of a turn",
    ),
    "ttl": ItemKey(
        grammar={"description": "Time to live, such as 30d or 500ms.", "$ref": "#/$defs/duration"},
        capability="add.ttl",
        able="forgets a text when the time is over that was given with it",
    ),
    "source": ItemKey(
        grammar=choice("Where it comes from, so how far it is trusted.", *ROLES),
        capability="add.source",
        able="knows where a text comes from: what the user said is not outdone by a page that an agent read",
    ),
    "role": ItemKey(
        grammar=choice("Who said it.", *ROLES),
        capability="add.role",
        able="knows who said a text",
    ),
}

LISTS: Final = "add.metadata.lists"
ABLE: Final[Mapping[Capability, str]] = {
    **{one.capability: one.able for one in ITEM_KEYS.values()},
    LISTS: "keeps lists and mappings in metadata",
}


def needs_of_item(item: Mapping[str, Tree]) -> Iterator[Capability]:
    """Yield the capabilities that an item calls for."""
    yield from (ITEM_KEYS[name].capability for name in item if name in ITEM_KEYS)
    if any(isinstance(value, (list, Mapping)) for value in (item.get("metadata") or {}).values()):
        yield LISTS
