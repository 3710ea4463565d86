"""The memory's tools: what a model sees of them, what they do; four of one purpose each, or the pair with two modes.

The wording is the specification's, because models react to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol

from memstory.contract.clock import Clock
from memstory.contract.errors import UnavailableError
from memstory.contract.values import Json, ToolSchema, Tree
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.result_texts import (
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
from memstory_reference.systems.topics.topic_keys import topic_key
from memstory_reference.text.secret_guard import left_out
from memstory_reference.tooling.local_tools import AddTool, ChangeTool, ReadTool, parameters
from memstory_reference.tooling.tools import Tool, ToolCaller

RECALL_TOOLS = frozenset({"list_memories", "memory_recall", "recall_topic", "search_memory"})
"""Tools that look something up: an answer that used one may only repeat what is remembered already."""

SAVING_TOOLS = frozenset({"memory_save", "save_topic"})
"""Tools that store a standing fact."""

_TOPIC = "Topic key (e.g. 'user.name', 'project.deadline')."


MEMORY_RECALL = ReadTool(
    name="memory_recall",
    description=(
        "Retrieve from memory. Two modes: "
        "(1) topic lookup — pass topic key to retrieve a stored preference, constraint, or project fact "
        "(e.g. topic='user.language_preference'); "
        "(2) similarity search — pass query string to search prior Q&A history for relevant past context. "
        "Use topic lookup when you know the key; use query search when looking for prior conversation context."
    ),
    # One of the two is required; JSON Schema says so badly, so it is checked when the tool is called.
    parameters=parameters(
        topic="Topic key for exact lookup (e.g. 'user.name', 'project.deadline').",
        query="Free-text query for similarity search over past Q&A history.",
    ),
)

MEMORY_SAVE = ChangeTool(
    name="memory_save",
    description=(
        "Save a preference, constraint, or project fact to memory under a topic key for exact retrieval later. "
        "Use topic prefixes: user.* for user preferences and personal facts, "
        "project.* for project decisions and metadata, constraint.* for things to avoid or enforce. "
        "Example: memory_save(topic='user.name', content='Richard'). "
        "Overwrites any previous value for the same topic key."
    ),
    parameters=parameters("topic", "content", topic=_TOPIC, content="The value to store."),
)

SAVE_TOPIC = ChangeTool(
    name="save_topic",
    description="User asks to remember a preference, rule, or fact permanently across sessions",
    parameters=parameters(
        "topic",
        "content",
        topic=(
            "Topic key with a prefix: user.* for preferences and personal facts, project.* for decisions and "
            "deadlines, constraint.* for things to avoid or enforce (e.g. 'user.name')."
        ),
        content="The value to store; it replaces what the topic held before.",
    ),
)

RECALL_TOPIC = ReadTool(
    name="recall_topic",
    description="Look up a specific standing fact by key the agent knows or can infer",
    parameters=parameters("topic", topic=_TOPIC),
)

SAVE_MEMORY = AddTool(
    name="save_memory",
    description="Explicitly note something important mid-conversation (agent-initiated)",
    parameters=parameters("content", content="What to note, in a sentence that stands on its own."),
)

SEARCH_MEMORY = ReadTool(
    name="search_memory",
    description="Recall something from past sessions when no exact key is known — search by meaning",
    parameters=parameters("query", query="What to look for, in words that the memory may have used."),
)

LIST_MEMORIES = ReadTool(
    name="list_memories",
    description=(
        "List everything that is remembered about the user, newest first, each with its id: standing facts, then past "
        "turns. Use it when the user asks what you know about them, and to find the ids of what is to be forgotten."
    ),
    parameters=parameters(),
)

FORGET_MEMORY = ChangeTool(
    name="forget_memory",
    description=(
        "Forget something because the user asks for it, with every past turn that says it. Give the topic key of a "
        "standing fact, or the id of a memory as list_memories shows it. It cannot be undone."
    ),
    parameters=parameters(topic=_TOPIC, id="The id of a memory."),
)

RATE_MEMORY = ChangeTool(
    name="rate_memory",
    description="Note how useful a past turn was, because the user said so: better ones are found first from then on",
    parameters=parameters(
        "id",
        "value",
        id="The id of a past turn, as list_memories shows it.",
        value={"type": "number", "description": "From -1, misleading, to 1, very useful."},
    ),
)


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
