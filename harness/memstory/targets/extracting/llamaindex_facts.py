"""LlamaIndex's block of facts: its model reads messages and answers with facts, all of which go into every prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, ClassVar

from memstory.contract.target import Capability, Environment, Hit, Query, Target, TargetFactory, Tree
from memstory.models.counted_model import CountedModel
from memstory.targets.extracting.model_inside import ABLE, NO_KEY, ModelInside


class LlamaindexFactsTarget(ModelInside):
    """A block a user, in memory only. It does not search: what is found are all facts, in their order."""

    def __init__(self) -> None:
        self._blocks: dict[str, Any] = {}

    async def open_memory(self, env: Environment) -> None:
        self._client = None if self.model is None else _client(self.model)

    async def close_memory(self) -> None:
        if self._client is not None:
            self._client.close()

    async def about(self) -> Mapping[str, str]:
        store = f"llama-index-core {version('llama-index-core')}"
        return {"store": store, "infer": self.model.label if self.model else "off"}

    async def learn(self, text: str, user: str) -> None:
        llms = import_module("llama_index.core.llms")
        if user not in self._blocks:
            block = import_module("llama_index.core.memory").FactExtractionMemoryBlock
            self._blocks[user] = block(llm=_model(self._client, self.model))
        await self._blocks[user].aput([llms.ChatMessage(role="user", content=text)])

    async def kept(self, user: str) -> Sequence[Hit]:
        block = self._blocks.get(user)
        return (
            [Hit(id=hashlib.sha256(fact.encode()).hexdigest()[:12], text=fact) for fact in block.facts] if block else []
        )

    async def found(self, query: Query, user: str) -> Sequence[Hit]:
        return (await self.kept(user))[: query.top_k]

    async def forget(self, hit: Hit, user: str) -> None:
        self._blocks[user].facts.remove(hit.text)


class LlamaindexFactsFactory(TargetFactory):
    """LlamaIndex's FactExtractionMemoryBlock; `llm=openai:MODEL` names its model."""

    name: ClassVar[str] = "llamaindex-facts"
    spec: ClassVar[str | None] = "memstory.targets.extracting.llamaindex_facts:LlamaindexFactsFactory"

    def capabilities(self, options: Mapping[str, Tree]) -> frozenset[Capability]:
        return ABLE

    def target(self) -> Target:
        return LlamaindexFactsTarget()


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
