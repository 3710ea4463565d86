"""LlamaIndex's blocks of memory: vectors over Chroma, and facts that a model reads out of messages."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
from memstory.contract.target import (
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Scope,
)
from memstory.models.counted_model import CountedModel
from memstory.models.openai_server import NO_KEY
from memstory.targets.adapter import AdapterFactory, refuse_keys, refuse_undeclared
from memstory.targets.embedders import Embedders, EmbeddingFactory, EmbeddingTarget, TextEmbedder
from memstory.targets.vendors.model_inside import ModelInside

# How the block writes what it was given into its text: one message each, a blank line between them.
_MESSAGE: Final = re.compile(r"<message role='user'>(.*?)</message>(?=\n\n<message role='user'>|\Z)", re.DOTALL)


class LlamaindexTarget(EmbeddingTarget):
    """One block for all users, each of whom is one session of LlamaIndex's: every call says which."""

    not_default: ClassVar = {
        "Chroma with the space cosine": "default l2; it is LlamaIndex's own integration otherwise",
        "similarity_top_k as asked": "default 2, where a story asks for a number",
        "anonymized_telemetry off": "default on, of Chroma",
    }
    capabilities = frozenset(
        {
            *("add", "add.verbatim", "add.exact", "search", "context"),
            *("restart", "crash", "persistent", "scope.user", "option.embedder"),
        }
    )
    _block: Any
    _client: Any
    _usual_count: int

    def __init__(self, embedders: Embedders) -> None:
        super().__init__(embedders)
        # How many are wanted is a property of the block: nobody else may change it meanwhile.
        self._asking = asyncio.Lock()

    async def open(self, env: Environment, clock: Clock) -> None:
        self.choose_embedder(env)
        self._client, self._block = await asyncio.to_thread(_open, Path(env.workspace) / "chroma", self.embedder)
        self._usual_count = self._block.similarity_top_k

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    def store_name(self) -> str:
        return f"llama-index-core {version('llama-index-core')} VectorMemoryBlock, chromadb {version('chromadb')}"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        refuse_keys(items)
        for item in items:
            # One call each: what is put at once becomes one memory.
            await self._block.aput([_message(item.text)], session_id=scope.user)
        return Receipt(items=[ReceiptItem(id=None, text=item.text, kind=item.kind) for item in items])

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        return [Hit(id=None, text=text) for text in _MESSAGE.findall(await self.context(query, scope))]

    async def context(self, query: Query, scope: Scope) -> str:
        refuse_undeclared(query, scope, self.capabilities)
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
    adapter = LlamaindexTarget


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


class LlamaindexFactsTarget(ModelInside):
    """A block a user, in memory only. It does not search: what is found are all facts, in their order."""

    def __init__(self) -> None:
        self._blocks: dict[str, Any] = {}

    async def open_memory(self, env: Environment) -> None:
        self._client = None if self.model is None else _client(self.model)

    async def close_memory(self) -> None:
        if self._client is not None:
            self._client.close()

    def store_name(self) -> str:
        return f"llama-index-core {version('llama-index-core')}"

    async def learn(self, text: str, user: str) -> None:
        llms = import_module("llama_index.core.llms")
        if user not in self._blocks:
            block = import_module("llama_index.core.memory").FactExtractionMemoryBlock
            self._blocks[user] = block(llm=_model(self._client, self.model))
        await self._blocks[user].aput([llms.ChatMessage(role="user", content=text)])

    async def memories(self, user: str) -> Sequence[Hit]:
        block = self._blocks.get(user)
        return (
            [Hit(id=hashlib.sha256(fact.encode()).hexdigest()[:12], text=fact) for fact in block.facts] if block else []
        )

    async def matches(self, query: Query, user: str) -> Sequence[Hit]:
        return (await self.memories(user))[: query.top_k]

    async def forget(self, hit: Hit, user: str) -> None:
        self._blocks[user].facts.remove(hit.text)


class LlamaindexFactsFactory(AdapterFactory):
    """LlamaIndex's FactExtractionMemoryBlock; `llm=openai:MODEL` names its model."""

    name: ClassVar[str] = "llamaindex-facts"
    adapter = LlamaindexFactsTarget


def _client(model: CountedModel) -> Any:
    return import_module("openai").OpenAI(base_url=model.url, api_key=NO_KEY)


def _model(client: Any, model: CountedModel | None) -> Any:
    """Return a chat model of LlamaIndex's kind; its own package for this protocol wants an older client."""
    llms = import_module("llama_index.core.llms")
    name = model.name if model else ""

    class OfOpenAI(llms.CustomLLM):  # type: ignore[misc, name-defined]
        @property
        def metadata(self) -> Any:
            return llms.LLMMetadata(model_name=name, is_chat_model=True)

        def chat(self, messages: Sequence[Any], **_more: Any) -> Any:
            said = [{"role": one.role.value, "content": one.content} for one in messages]
            answer = client.chat.completions.create(model=name, messages=said, temperature=0)
            content = answer.choices[0].message.content
            return llms.ChatResponse(message=llms.ChatMessage(role="assistant", content=content))

        def complete(self, prompt: str, formatted: bool = False, **_more: Any) -> Any:  # noqa: FBT001,FBT002  (its own)
            raise NotImplementedError

        def stream_complete(self, prompt: str, formatted: bool = False, **_more: Any) -> Any:  # noqa: FBT001,FBT002  (its own)
            raise NotImplementedError

    return OfOpenAI()
