"""The topics memory as tools and people use it, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from memstory.contract.values import Json
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry
from memstory_reference.systems.topics.forgetting import ForgottenEntry


class TopicsAnywhere(Protocol):
    """The memory, whose methods are as `MemoryService` has them."""

    async def write_topic(self, owner: str, topic: str, content: str) -> str:
        """Store `content` under `topic`; return the entry's id."""
        ...

    async def topic_entry(self, owner: str, topic: str) -> TopicEntry | None:
        """Return the entry of exactly this topic, or None."""
        ...

    async def list_topics(self, owner: str, prefix: str = "") -> list[TopicEntry]:
        """Return the owner's topics by name."""
        ...

    async def write_episodic(self, owner: str, content: str, metadata: Mapping[str, Json] | None = None) -> str:
        """Add an engram; return its id."""
        ...

    async def search_episodic(self, owner: str, query: str) -> list[FoundEngram]:
        """Return engrams by meaning, best first."""
        ...

    async def list_engrams(self, owner: str) -> list[EngramEntry]:
        """Return the owner's engrams, oldest first."""
        ...

    async def entry(self, owner: str, entry_id: str) -> TopicEntry | EngramEntry | None:
        """Return what has this id, or None."""
        ...

    async def reward(self, owner: str, engram_id: str, value: float) -> bool:
        """Rate an engram from -1 to 1; False if unknown."""
        ...

    async def rate_turn(self, owner: str, query_id: str, value: float) -> bool:
        """Rate the turn that answered a query; False if it is not remembered."""
        ...

    async def forget_repeats(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        """Delete an entry and every engram that holds what it says; None if unknown."""
        ...

    async def forget(self, owner: str, entry_id: str) -> bool:
        """Delete an entry; False if unknown."""
        ...
