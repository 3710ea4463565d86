"""LangMem's store manager over LangGraph's store in memory: it inserts, patches and deletes by tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

from memstory.contract.target import Environment, Hit, Query
from memstory.models.openai_server import NO_KEY
from memstory.targets.embedders import EmbeddingFactory, EmbeddingTarget, vector_length
from memstory.targets.vendors.langgraph import namespace_part
from memstory.targets.vendors.model_inside import MODEL_CAPABILITIES, ModelInside

_EVERYTHING = 100_000


class LangmemTarget(ModelInside, EmbeddingTarget):
    """Memories of one user in a namespace; related ones are shown to the model, which may change them."""

    capabilities = MODEL_CAPABILITIES | {"search.scores", "embedder.fixed", "option.embedder"}
    _store: Any
    _manager: Any = None
    _model: Any = None

    async def open_memory(self, env: Environment) -> None:
        self.choose_embedder(env)
        index = {"dims": await vector_length(self.embedder, env), "embed": self._embed}
        self._store = import_module("langgraph.store.memory").InMemoryStore(index=index)
        if self.model is not None:
            self._model = import_module("langchain_openai").ChatOpenAI(
                model=self.model.name, base_url=self.model.url, api_key=NO_KEY, temperature=0
            )
            self._manager = import_module("langmem").create_memory_store_manager(
                self._model, namespace=("memories", "{langgraph_user_id}"), store=self._store, enable_deletes=True
            )

    async def close_memory(self) -> None:
        if self._model is not None:
            self._model.root_client.close()
            await self._model.root_async_client.close()

    def store_name(self) -> str:
        return f"langmem {version('langmem')}, langgraph {version('langgraph')}"

    async def learn(self, text: str, user: str) -> None:
        config = {"configurable": {"langgraph_user_id": namespace_part(user)}}
        await self._manager.ainvoke({"messages": [{"role": "user", "content": text}]}, config=config)

    async def memories(self, user: str) -> Sequence[Hit]:
        found = await self._store.asearch(("memories", namespace_part(user)), limit=_EVERYTHING)
        return [_hit(one) for one in sorted(found, key=lambda one: one.created_at)]

    async def matches(self, query: Query, user: str) -> Sequence[Hit]:
        limit = 10 if query.top_k is None else query.top_k
        return [
            _hit(one)
            for one in await self._store.asearch(("memories", namespace_part(user)), query=query.text, limit=limit)
        ]

    async def forget(self, hit: Hit, user: str) -> None:
        await self._store.adelete(("memories", namespace_part(user)), hit.id)

    async def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self.embedder.embed(texts, "document")


class LangmemFactory(EmbeddingFactory):
    """LangMem with the embedder that the reference uses too; `llm=openai:MODEL` names its model."""

    name: ClassVar[str] = "langmem"
    adapter = LangmemTarget


def _hit(found: Any) -> Hit:
    content = found.value.get("content")
    text = content.get("content", content) if isinstance(content, Mapping) else content
    return Hit(
        id=found.key, text=str(text), score=getattr(found, "score", None), created_at=found.created_at.isoformat()
    )
