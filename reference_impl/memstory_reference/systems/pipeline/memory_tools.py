"""The tools of the memory, for a model and for MCP clients alike: recall, remember, list, forget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from memstory.contract.values import Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import limits_of
from memstory_reference.systems.pipeline.chunk import MemoryChunk, Utterance
from memstory_reference.systems.pipeline.selection import keyword_coverage
from memstory_reference.systems.pipeline.service import PipelineService
from memstory_reference.text.words import extract_keywords
from memstory_reference.tooling import AddTool, ChangeTool, LocalTools, ReadTool, parameters, rows_within

_FIVE = {"type": "integer", "description": "How many results at most", "default": 5, "minimum": 1}
_FIFTY = {"type": "integer", "description": "How many at most", "default": 50, "minimum": 1}
RECALL = ReadTool(
    name="recall_memories",
    description="Search memories by meaning; returns preferences, facts and events, best first.",
    parameters=parameters("query", query="What to search for", limit=_FIVE),
)
REMEMBER = AddTool(
    name="remember_text",
    description="Remember a preference, a fact or an event, in one sentence.",
    parameters=parameters("text", text="What to remember"),
)
LIST = ReadTool(
    name="list_memories",
    description="List memories, the newest first.",
    parameters=parameters(limit=_FIFTY),
)
FORGET = ChangeTool(
    name="forget_memory",
    description="Forget a memory for good, with what says the same and what it had replaced.",
    parameters=parameters("memory_id", memory_id="Id of the memory, as recall_memories gives it"),
)
SPECS = (RECALL, REMEMBER, LIST, FORGET)
LISTED = 50
LEAST_WORDS = 2
"""A memory of fewer words that carry meaning is repeated by its own text alone."""


Forget = Callable[[str, str], Awaitable[Sequence[MemoryChunk]]]
"""Forgets a memory of an owner, by id, with what repeats it; returns what is gone."""


class PipelineTools(LocalTools):
    """The tools of one owner in one session; neither is ever an argument."""

    def __init__(self, memory: PipelineService, owner: str, session: str, forget: Forget) -> None:
        self.has_forgotten = False
        self._memory = memory
        self._forget_all = forget
        self._owner = owner
        self._session = session
        super().__init__((RECALL, self._recall), (REMEMBER, self._remember), (LIST, self._list), (FORGET, self._forget))

    async def _recall(self, arguments: Mapping[str, Tree]) -> Tree:
        result = await self._memory.recall(
            arguments["query"], self._owner, arguments.get("limit", 5), session_id=self._session, by_score=True
        )
        return self._fit([one.memory for one in result.memories])

    async def _remember(self, arguments: Mapping[str, Tree]) -> Tree:
        utterance = Utterance(text=arguments["text"], session_id=self._session)
        (receipts,) = await self._memory.ingest_all([utterance], self._owner, is_asked_for=True)
        kept = [memory_view(one.memory) for one in receipts if one.memory is not None]
        if not kept:
            raise InputError(f"this is not stored: {'; '.join(one.reason for one in receipts) or 'it is blank'}")
        return kept

    async def _list(self, arguments: Mapping[str, Tree]) -> Tree:
        return self._fit(await self._memory.memories(self._owner, limit=arguments.get("limit", LISTED)))

    def _fit(self, memories: Sequence[MemoryChunk]) -> Tree:
        return rows_within([*map(memory_view, memories)], limits_of(self._memory.config).max_result_characters)

    async def _forget(self, arguments: Mapping[str, Tree]) -> Tree:
        gone = await self._forget_all(self._owner, arguments["memory_id"])
        self.has_forgotten |= bool(gone)
        return {"success": bool(gone), "forgotten": [memory_view(one) for one in gone]}


async def memory_with_repeats(memory: PipelineService, owner: str, identifier: str) -> list[MemoryChunk]:
    """Return a memory, what a preference had replaced, and every memory that says the same; none if it is unknown."""
    found = await memory.get(identifier, owner)
    if found is None:
        return []
    past = await memory.history(found.key, owner) if found.key else []
    others = await memory.memories(owner, include_replaced=True)
    same = [one for one in others if any(states_all(one.content, told.content) for told in (found, *past))]
    return list({one.id: one for one in (found, *past, *same)}.values())


def states_all(text: str, told: str) -> bool:
    """Say whether a text holds all that another one tells, by the words that carry meaning.

    >>> states_all("Well, my cat is Tom, you know", "My cat is Tom"), states_all("Tom sleeps", "My cat is Tom")
    (True, False)
    """
    return text == told or (len(extract_keywords(told)) >= LEAST_WORDS and keyword_coverage(told, text) == 1.0)


def memory_view(memory: MemoryChunk) -> dict[str, Tree]:
    """Return a memory as tools give it."""
    return {
        "id": memory.id,
        "content": memory.content,
        "type": str(memory.memory_type),
        "created_at": memory.created_at.isoformat(),
    }
