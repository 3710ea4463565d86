"""What the memories have in common whose rows are in a vector store."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from memstory.contract.clock import Clock
from memstory_reference.input_checks import checked_owner
from memstory_reference.ports import Embedder, NewId, VectorIndex, VectorStore
from memstory_reference.setting_rules import SQLITE
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.system_memory import SystemMemory, engine_name


@dataclass(kw_only=True, eq=False)
class VectorMemory(SystemMemory):
    """A memory whose rows are in a vector store, each owner's in an index of their own.

    Callers pass raw text: the embedder's profile adds prefixes.
    """

    settings: Any
    vectors: VectorStore
    embedder: Embedder
    clock: Clock
    new_id: NewId
    tombstones: Tombstones = field(default_factory=NoTombstones)
    engine: str = SQLITE

    def __post_init__(self) -> None:
        self.embedder = CheckedEmbedder(self.embedder)

    @property
    @abstractmethod
    def collection(self) -> str:
        """Return what the store calls all of its rows."""

    @property
    def store_name(self) -> str:
        return engine_name(self.engine)

    async def open(self) -> None:
        """Start what goes on around it."""

    async def close(self) -> None:
        self.tombstones.close()
        await self.vectors.close()

    async def owners(self) -> Sequence[str]:
        return await self.vectors.owners(self.collection)

    def _alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Be alone between reading an owner's rows and writing what follows from them."""
        return self.vectors.alone(checked_owner(owner))

    async def _index(self, owner: str) -> VectorIndex:
        return await self.vectors.index(self.collection, checked_owner(owner))
