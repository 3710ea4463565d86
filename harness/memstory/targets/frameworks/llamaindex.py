"""LlamaIndex's VectorMemoryBlock over Chroma: it puts messages and gets the text that a prompt would hold."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Scope,
    Target,
)
from memstory.targets.conditions import refuse_undeclared
from memstory.targets.embedders import Embedders, TextEmbedder, TimedEmbedder
from memstory.targets.embedding_factory import EmbeddingFactory

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.verbatim", "add.exact", "search", "context"),
        *("restart", "crash", "persistent", "scope.user", "option.embedder"),
    }
)
# How the block writes what it was given into its text: one message each, a blank line between them.
_MESSAGE: Final = re.compile(r"<message role='user'>(.*?)</message>(?=\n\n<message role='user'>|\Z)", re.DOTALL)


class LlamaindexTarget(Target):
    """One block for all users, each of whom is one session of LlamaIndex's: every call says which."""

    _block: Any
    _client: Any
    _embedder: TimedEmbedder
    _usual_count: int

    def __init__(self, embedders: Embedders) -> None:
        self._embedders = embedders
        # How many are wanted is a property of the block: nobody else may change it meanwhile.
        self._asking = asyncio.Lock()

    async def open(self, env: Environment, clock: Clock) -> None:
        self._embedder = self._embedders.of(env)
        self.embedding = self._embedder.watch
        self._client, self._block = await asyncio.to_thread(_open, Path(env.workspace) / "chroma", self._embedder)
        self._usual_count = self._block.similarity_top_k

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    async def about(self) -> Mapping[str, str]:
        store = f"llama-index-core {version('llama-index-core')} VectorMemoryBlock, chromadb {version('chromadb')}"
        return {"embedder": self._embedder.model, "store": store}

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        for item in items:
            if item.key is not None:
                raise NotSupported("add.key")
        for item in items:
            # One call each: what is put at once becomes one memory.
            await self._block.aput([_message(item.text)], session_id=scope.user)
        return Receipt(items=[ReceiptItem(id=None, text=item.text, kind=item.kind) for item in items])

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [Hit(id=None, text=text) for text in _MESSAGE.findall(await self.context(query, scope))]

    async def context(self, query: Query, scope: Scope) -> str:
        refuse_undeclared(query, scope, CAPABILITIES)
        async with self._asking:
            self._block.similarity_top_k = self._usual_count if query.top_k is None else query.top_k
            try:
                found: str = await self._block.aget([_message(query.text)], session_id=scope.user)
            except TypeError as error:
                if "Number of requested results" not in str(error):
                    raise
                # Chroma inside it takes no 0.
                raise Refused(str(error)) from error
        return found


class LlamaindexFactory(EmbeddingFactory):
    """LlamaIndex's VectorMemoryBlock over Chroma, with the embedder that the reference uses too."""

    name: ClassVar[str] = "llamaindex"
    spec: ClassVar[str | None] = "memstory.targets.frameworks.llamaindex:LlamaindexFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES

    def target(self) -> Target:
        return LlamaindexTarget(self._embedders)


def _message(text: str) -> Any:
    return import_module("llama_index.core.llms").ChatMessage(role="user", content=text)


def _open(folder: Path, embedder: TextEmbedder) -> tuple[Any, Any]:
    # All of these take seconds: only where they were chosen.
    chromadb, settings = import_module("chromadb"), import_module("chromadb.config").Settings
    stores, memories = import_module("llama_index.vector_stores.chroma"), import_module("llama_index.core.memory")
    client = chromadb.PersistentClient(str(folder), settings=settings(anonymized_telemetry=False))
    collection = client.get_or_create_collection(
        "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
    )
    store = stores.ChromaVectorStore(chroma_collection=collection)
    return client, memories.VectorMemoryBlock(vector_store=store, embed_model=_embedding(embedder))


def _embedding(embedder: TextEmbedder) -> Any:
    """Return `embedder` as LlamaIndex wants one: its class can only be written where LlamaIndex is imported."""
    vendor: Any = import_module("llama_index.core.embeddings")

    class Embedding(vendor.BaseEmbedding):  # type: ignore[misc]  # what it inherits from is known when it runs
        async def _aget_query_embedding(self, query: str) -> list[float]:
            return list((await embedder.embed([query], "query"))[0])

        async def _aget_text_embedding(self, text: str) -> list[float]:
            return list((await embedder.embed([text], "document"))[0])

        def _get_query_embedding(self, query: str) -> list[float]:
            raise NotImplementedError("the memory block embeds asynchronously")

        def _get_text_embedding(self, text: str) -> list[float]:
            raise NotImplementedError("the memory block embeds asynchronously")

    return Embedding(model_name=embedder.model)
