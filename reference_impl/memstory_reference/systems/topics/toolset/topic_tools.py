"""The memory's tools: four of one purpose each, or the pair of which one has two modes; and what people may ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory.contract.values import ToolSchema, Tree
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.systems.topics.anywhere import TopicsAnywhere
from memstory_reference.systems.topics.engrams import TopicEntry
from memstory_reference.systems.topics.toolset.result_texts import (
    NO_MEMORIES,
    NOTE_SAVED,
    RATED,
    engrams_text,
    forgotten_text,
    memories_text,
    topic_saved,
    topic_text,
    unavailable,
)
from memstory_reference.systems.topics.toolset.tool_schemas import (
    FORGET_MEMORY,
    LIST_MEMORIES,
    MEMORY_RECALL,
    MEMORY_SAVE,
    RATE_MEMORY,
    RECALL_TOPIC,
    SAVE_MEMORY,
    SAVE_TOPIC,
    SEARCH_MEMORY,
)
from memstory_reference.systems.topics.topic_keys import topic_key
from memstory_reference.text.secret_guard import left_out
from memstory_reference.tooling.tools import Tool, ToolCaller

Toolset = Literal["single", "dual"]

_Call = Callable[[Mapping[str, Tree], ToolCaller], Awaitable[str]]


def topic_tools(service: TopicsAnywhere, clock: Clock, toolset: Toolset) -> Sequence[Tool]:
    """Return the tools of `toolset`; all share the one `service`."""
    calls = _Calls(service, clock)
    asked_for = [
        _tool(LIST_MEMORIES, calls.list_memories),
        _tool(FORGET_MEMORY, calls.forget_memory),
        _tool(RATE_MEMORY, calls.rate_memory),
    ]
    if toolset == "dual":
        # Names that the prose uses. In the other set `save_memory` is a separate tool, so there they are not aliases.
        return [
            _tool(MEMORY_RECALL, calls.recall, aliases=("recall_memory",)),
            _tool(MEMORY_SAVE, calls.save_topic, aliases=("save_memory",)),
            *asked_for,
        ]
    return [
        _tool(SAVE_TOPIC, calls.save_topic),
        _tool(RECALL_TOPIC, calls.recall_topic),
        _tool(SAVE_MEMORY, calls.save_memory),
        _tool(SEARCH_MEMORY, calls.search),
        *asked_for,
    ]


class _Calls:
    """What the tools do; the schema made sure of the types of their arguments."""

    def __init__(self, service: TopicsAnywhere, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    async def save_topic(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        entry_id = await self._service.write_topic(caller.owner, args["topic"], args["content"])
        stored = await self._service.entry(caller.owner, entry_id)
        if isinstance(stored, TopicEntry):
            return topic_saved(stored.topic, left_out(stored.content))
        # It was forgotten since: the memory has taken the topic, and what is left to do is to name it.
        return topic_saved(topic_key(args["topic"], strict=False))

    async def recall_topic(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        entry = await self._service.topic_entry(caller.owner, args["topic"])
        return topic_text(entry) if entry else NO_MEMORIES

    async def save_memory(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        session = {"session_id": caller.session_id} if caller.session_id else {}
        entry_id = await self._service.write_episodic(caller.owner, args["content"], {**session, "source": "agent"})
        stored = await self._service.entry(caller.owner, entry_id)
        missing = left_out(stored.content) if stored else None
        return f"{NOTE_SAVED} ({missing})" if missing else NOTE_SAVED

    async def search(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        found = await self._service.search_episodic(caller.owner, args["query"])
        return engrams_text(found, self._clock.now().date())

    async def recall(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        # Models fill in both arguments, one of them blank: only what says something chooses the mode.
        if args.get("topic", "").strip():
            return await self.recall_topic(args, caller)
        if args.get("query", "").strip():
            return await self.search(args, caller)
        raise InputError("memory_recall: give 'topic' for an exact lookup or 'query' for a search by meaning")

    async def list_memories(self, _: Mapping[str, Tree], caller: ToolCaller) -> str:
        topics = await self._service.list_topics(caller.owner)
        return memories_text(topics, await self._service.list_engrams(caller.owner))

    async def forget_memory(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        topic, entry_id = (str(args.get(name, "")).strip() for name in ("topic", "id"))
        if not topic and not entry_id:
            raise InputError("forget_memory: give 'topic' for a standing fact or 'id' for any memory")
        entry = await self._service.topic_entry(caller.owner, topic) if topic else None
        found = await self._service.forget_repeats(caller.owner, entry.id if entry else entry_id or topic)
        if found is None:
            raise InputError(f"no memory has the topic or id {topic or entry_id!r:.80}; list_memories shows them")
        return forgotten_text(found)

    async def rate_memory(self, args: Mapping[str, Tree], caller: ToolCaller) -> str:
        if not await self._service.reward(caller.owner, args["id"], args["value"]):
            raise InputError(f"no memory has the id {args['id']!r:.80}; list_memories shows them")
        return RATED


def _tool(spec: ToolSchema, call: _Call, aliases: Sequence[str] = ()) -> Tool:
    async def guarded(arguments: Mapping[str, Tree], caller: ToolCaller) -> str:
        try:
            return await call(arguments, caller)
        except (UnavailableError, StoreConflictError) as error:
            raise UnavailableError(unavailable(error)) from error

    return Tool(spec=spec, call=guarded, aliases=aliases)
