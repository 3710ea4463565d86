"""Parts that fail on demand, so that a story can say what a memory does when they do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
from memstory_reference.errors import UnavailableError
from memstory_reference.ports import (
    ChatModel,
    ChatModelUnavailableError,
    EmbedderUnavailableError,
    Json,
    Match,
    Message,
    Primitive,
    Purpose,
    Record,
    Reply,
    ToolSpec,
    VectorIndex,
    Vectors,
    VectorStore,
)

MODES = ("ok", "down", "slow", "garbage")
"""How a part behaves; `garbage` answers in the right form with wrong content."""

SLOW_SECONDS = 0.2


class FaultyEmbedder:
    """An embedder with a switch; its garbage is one and the same vector for every text."""

    def __init__(self, inner: ProfiledEmbedder, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self.model = inner.model
        self.dimension = inner.dimension
        self.profile = inner.profile
        self.mode = "ok"
        self._inner = inner
        self._slow_seconds = slow_seconds

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        if self.mode == "down":
            raise EmbedderUnavailableError("the story has taken the embedder down")
        if self.mode == "slow":
            await asyncio.sleep(self._slow_seconds)
        vectors = await self._inner.embed(texts, purpose)
        self.dimension = self._inner.dimension
        if self.mode == "garbage":
            vectors = np.zeros_like(vectors)
            vectors[:, :1] = 1.0
        return vectors


class FaultyChat:
    """A chat model with a switch; its garbage is no language and calls no tool."""

    def __init__(self, inner: ChatModel, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self.name = inner.name
        self.mode = "ok"
        self._inner = inner
        self._slow_seconds = slow_seconds

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        *,
        purpose: str = "chat",
        temperature: float | None = None,
        response_schema: Mapping[str, Json] | None = None,
    ) -> Reply:
        if self.mode == "down":
            raise ChatModelUnavailableError("the story has taken the chat model down")
        if self.mode == "slow":
            await asyncio.sleep(self._slow_seconds)
        if self.mode == "garbage":
            return Reply(content='{"": [[[ ...')
        return await self._inner.chat(
            messages, tools, purpose=purpose, temperature=temperature, response_schema=response_schema
        )


class FaultyVectorStore:
    """A vector store with a switch, for all its indexes; its garbage is that it finds nothing."""

    def __init__(self, inner: VectorStore, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self.mode = "ok"
        self._inner = inner
        self._slow_seconds = slow_seconds

    async def index(self, collection: str, owner: str) -> VectorIndex:
        await self.pass_or_fail()
        return _FaultyIndex(self, await self._inner.index(collection, owner))

    async def owners(self, collection: str) -> Sequence[str]:
        await self.pass_or_fail()
        return await self._inner.owners(collection)

    async def close(self) -> None:
        # A store that is down is still closed: its folder must be free for the next to open it.
        await self._inner.close()

    async def pass_or_fail(self) -> None:
        """Behave as the switch says, before anything is asked of the store."""
        if self.mode == "down":
            raise UnavailableError("the story has taken the store down")
        if self.mode == "slow":
            await asyncio.sleep(self._slow_seconds)


class _FaultyIndex:
    """One index of a store with a switch."""

    def __init__(self, store: FaultyVectorStore, inner: VectorIndex) -> None:
        self._store = store
        self._inner = inner

    async def upsert(self, records: Sequence[Record]) -> None:
        await self._store.pass_or_fail()
        await self._inner.upsert(records)

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        await self._store.pass_or_fail()
        return await self._inner.get(ids)

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        await self._store.pass_or_fail()
        return [] if self._store.mode == "garbage" else await self._inner.query(vector, k, where)

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        await self._store.pass_or_fail()
        return await self._inner.list(where, limit, offset)

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        await self._store.pass_or_fail()
        return await self._inner.delete(ids)

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        await self._store.pass_or_fail()
        return await self._inner.count(where)
