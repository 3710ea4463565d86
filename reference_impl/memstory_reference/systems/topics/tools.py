"""The memory's tools: what a model sees of them, what they do; four of one purpose each, or the pair with two modes.

The wording is the specification's, because models react to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from memstory.contract.clock import Clock
from memstory.contract.values import Tree
from memstory_reference.bus import Bus
from memstory_reference.errors import InputError
from memstory_reference.systems.topics.bus_tools import ToolServer
from memstory_reference.systems.topics.engrams import EngramEntry, TopicEntry
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.result_texts import (
    NO_MEMORIES,
    engrams_text,
    forgotten_text,
    memories_text,
    topic_text,
)
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.topics.topic_keys import topic_key
from memstory_reference.text.secret_guard import left_out
from memstory_reference.tooling import AddTool, ChangeTool, LocalTools, ReadTool, parameters

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


Toolset = Literal["single", "dual"]

ALIASES: Mapping[Toolset, Mapping[str, str]] = {
    "single": {},
    "dual": {"recall_memory": MEMORY_RECALL.name, "save_memory": MEMORY_SAVE.name},
}
"""Names that the prose uses. In the other set `save_memory` is a separate tool, so there they are not aliases."""


class TopicTools(LocalTools):
    """The tools of one owner in one session; neither is ever an argument. The schema made sure of types."""

    def __init__(
        self, memory: MemoryService, clock: Clock, toolset: Toolset, owner: str, session: str | None = None
    ) -> None:
        self._memory = memory
        self._clock = clock
        self._owner = owner
        self._session = session
        super().__init__(
            *(
                ((MEMORY_RECALL, self._recall), (MEMORY_SAVE, self._save_topic))
                if toolset == "dual"
                else (
                    (SAVE_TOPIC, self._save_topic),
                    (RECALL_TOPIC, self._recall_topic),
                    (SAVE_MEMORY, self._save_memory),
                    (SEARCH_MEMORY, self._search),
                )
            ),
            (LIST_MEMORIES, self._list),
            (FORGET_MEMORY, self._forget),
            (RATE_MEMORY, self._rate),
        )

    async def _save_topic(self, args: Mapping[str, Tree]) -> str:
        entry_id = await self._memory.write_topic(self._owner, args["topic"], args["content"])
        stored = await self._memory.entry(self._owner, entry_id)
        if isinstance(stored, TopicEntry):
            return _without(f"Memory saved: {stored.topic}", stored)
        # It was forgotten since: the memory has taken the topic, and what is left to do is to name it.
        return f"Memory saved: {topic_key(args['topic'], strict=False)}"

    async def _recall_topic(self, args: Mapping[str, Tree]) -> str:
        entry = await self._memory.topic_entry(self._owner, args["topic"])
        return topic_text(entry) if entry else NO_MEMORIES

    async def _save_memory(self, args: Mapping[str, Tree]) -> str:
        session = {"session_id": self._session} if self._session else {}
        entry_id = await self._memory.write_episodic(self._owner, args["content"], {**session, "source": "agent"})
        return _without("Memory saved.", await self._memory.entry(self._owner, entry_id))

    async def _search(self, args: Mapping[str, Tree]) -> str:
        found = await self._memory.search_episodic(self._owner, args["query"])
        return engrams_text(found, self._clock.now().date())

    async def _recall(self, args: Mapping[str, Tree]) -> str:
        # Models fill in both arguments, one of them blank: only what says something chooses the mode.
        if args.get("topic", "").strip():
            return await self._recall_topic(args)
        if args.get("query", "").strip():
            return await self._search(args)
        raise InputError("memory_recall: give 'topic' for an exact lookup or 'query' for a search by meaning")

    async def _list(self, _: Mapping[str, Tree]) -> str:
        topics = await self._memory.list_topics(self._owner)
        return memories_text(topics, await self._memory.list_engrams(self._owner))

    async def _forget(self, args: Mapping[str, Tree]) -> str:
        topic, entry_id = (str(args.get(name, "")).strip() for name in ("topic", "id"))
        if not topic and not entry_id:
            raise InputError("forget_memory: give 'topic' for a standing fact or 'id' for any memory")
        entry = await self._memory.topic_entry(self._owner, topic) if topic else None
        found = await self._memory.forget_repeats(self._owner, entry.id if entry else entry_id or topic)
        if found is None:
            raise InputError(f"no memory has the topic or id {topic or entry_id!r:.80}; list_memories shows them")
        return forgotten_text(found)

    async def _rate(self, args: Mapping[str, Tree]) -> str:
        if not await self._memory.reward(self._owner, args["id"], args["value"]):
            raise InputError(f"no memory has the id {args['id']!r:.80}; list_memories shows them")
        return "Memory rated."


def topic_tools(memory: MemoryService, clock: Clock, settings: TopicsSettings, bus: Bus) -> ToolServer:
    """Return what serves the tools of the settings' toolset on a bus."""
    return ToolServer(
        lambda owner, session: TopicTools(memory, clock, settings.toolset, owner, session),
        bus,
        aliases=ALIASES[settings.toolset],
        result_characters=settings.max_result_characters,
    )


def _without(confirmation: str, stored: EngramEntry | TopicEntry | None) -> str:
    """Return a confirmation with what was left out of what is stored, if a secret was."""
    missing = left_out(stored.content) if stored else None
    return f"{confirmation} ({missing})" if missing else confirmation
