"""The memory's tools: what a model sees of them, what they do; four of one purpose each, or the pair with two modes.

The wording is the specification's, because models react to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from memstory.contract.target import Item, Query, ReceiptItem, Ref, Scope, Tree
from memstory_reference.bus import Bus
from memstory_reference.errors import InputError
from memstory_reference.system_memory import ForgetResult, SystemMemory
from memstory_reference.systems.topics.bus_tools import ToolServer
from memstory_reference.systems.topics.entries import TOPIC
from memstory_reference.systems.topics.result_texts import forgotten_text, memories_text
from memstory_reference.systems.topics.settings import TopicsSettings
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

Forget = Callable[[str, Scope], Awaitable[ForgetResult]]
"""Forgets a memory by its id."""


class TopicTools(LocalTools):
    """The tools of one owner in one session; neither is ever an argument. The schema made sure of types.

    Only what is noted belongs to the session: all else is of the owner.
    """

    def __init__(
        self,
        memory: SystemMemory,
        toolset: Toolset,
        owner: str,
        session: str | None = None,
        forget: Forget | None = None,
    ) -> None:
        self._memory = memory
        self._forget_entry = forget
        self._scope = Scope(user=owner)
        self._session = Scope(user=owner, session=session)
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
        receipt = await self._memory.add([Item(text=args["content"], key=args["topic"])], self._scope)
        return _confirmation(f"Memory saved: {receipt.items[0].key}", receipt.items[0])

    async def _recall_topic(self, args: Mapping[str, Tree]) -> str:
        return await self._memory.context(Query(text=args["topic"], kinds=[TOPIC]), self._scope)

    async def _save_memory(self, args: Mapping[str, Tree]) -> str:
        receipt = await self._memory.add([Item(text=args["content"], metadata={"source": "agent"})], self._session)
        return _confirmation("Memory saved.", receipt.items[0])

    async def _search(self, args: Mapping[str, Tree]) -> str:
        return await self._memory.context(Query(text=args["query"]), self._scope)

    async def _recall(self, args: Mapping[str, Tree]) -> str:
        # Models fill in both arguments, one of them blank: only what says something chooses the mode.
        if args.get("topic", "").strip():
            return await self._recall_topic(args)
        if args.get("query", "").strip():
            return await self._search(args)
        raise InputError("memory_recall: give 'topic' for an exact lookup or 'query' for a search by meaning")

    async def _list(self, _: Mapping[str, Tree]) -> str:
        return memories_text(await self._memory.list(self._scope))

    async def _forget(self, args: Mapping[str, Tree]) -> str:
        topic, entry_id = (str(args.get(name, "")).strip() for name in ("topic", "id"))
        if not topic and not entry_id:
            raise InputError("forget_memory: give 'topic' for a standing fact or 'id' for any memory")
        entry = await self._memory.get(Ref(key=topic), self._scope) if topic else None
        forget = self._forget_entry or self._memory.forget
        found = await forget(str(entry.id) if entry else entry_id or topic, self._scope)
        if not found.gone:
            raise InputError(f"no memory has the topic or id {topic or entry_id!r:.80}; list_memories shows them")
        return forgotten_text(found)

    async def _rate(self, args: Mapping[str, Tree]) -> str:
        if not await self._memory.feedback(Ref(id=args["id"]), args["value"], self._scope):
            raise InputError(f"no memory has the id {args['id']!r:.80}; list_memories shows them")
        return "Memory rated."


def topic_tools(memory: SystemMemory, settings: TopicsSettings, bus: Bus, forget: Forget | None = None) -> ToolServer:
    """Return what serves the tools of the settings' toolset on a bus; `forget` is the memory's own if none is given."""
    return ToolServer(
        lambda owner, session: TopicTools(memory, settings.toolset, owner, session, forget),
        bus,
        aliases=ALIASES[settings.toolset],
        result_characters=settings.max_result_characters,
    )


def _confirmation(text: str, stored: ReceiptItem) -> str:
    """Return a confirmation with what was left out of what is stored, if a secret was."""
    return f"{text} ({stored.reason})" if stored.reason else text
