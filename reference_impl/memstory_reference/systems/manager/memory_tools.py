"""The three tools of the memory, for a model and for MCP clients alike (M-13, M-21, MF-9, MF-17; PW-M-TOOLS)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from memstory.contract.values import Tree
from memstory_reference.input_checks import checked_count
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories.memory import Memory, memory_type_of
from memstory_reference.tooling import AddTool, ChangeTool, LocalTools, ReadTool, parameters, rows_within

_TYPES = "conversation (30 days), fact (permanent) or context (today)"

SEARCH = ReadTool(
    name="search_memories",
    description="Search memories by meaning; returns those that match, with relevance scores.",
    parameters=parameters(
        "query",
        query='What to search for; "*" lists the newest facts',
        memory_type='Optional filter: "conversation", "fact" or "context"',
        limit={"type": "integer", "description": "Max results to return", "default": 5},
    ),
)
STORE = AddTool(
    name="store_memory",
    description="Store a new memory.",
    parameters=parameters(
        "content",
        content="What to remember",
        memory_type={"type": "string", "description": _TYPES, "default": "fact"},
        metadata={"type": "object", "description": "Optional key-value pairs"},
    ),
)
FORGET = ChangeTool(
    name="forget_memory",
    description="Delete a specific memory, and the conversations that repeat it.",
    parameters=parameters("memory_id", memory_id="ID of the memory to delete"),
)
SPECS = (SEARCH, STORE, FORGET)
EVERYTHING = "*"
LISTED = 50

Forget = Callable[[str, str], Awaitable[Sequence[Memory]]]
"""Forgets a memory of an owner, by id, with the turns that repeat it; returns them."""


class ManagerTools(LocalTools):
    """The tools of one owner in one session; neither is ever an argument."""

    def __init__(
        self, manager: MemoryManager, owner: str, session: str | None = None, forget: Forget | None = None
    ) -> None:
        self._manager = manager
        self._forget_saying = forget or manager.forget_saying
        self._owner = owner
        self._session = session
        super().__init__((SEARCH, self._search), (STORE, self._store), (FORGET, self._forget))

    async def _search(self, arguments: Mapping[str, Tree]) -> Tree:
        named, limit = arguments.get("memory_type"), arguments.get("limit")
        about: dict[str, Any] = {"session": self._session, "across": True}
        if arguments["query"].strip() == EVERYTHING:
            newest = (await self._manager.memories(self._owner, [memory_type_of(named or "fact")], **about))[::-1]
            rows = [_row(one) for one in newest[: checked_count(limit or LISTED, "limit")]]
        else:
            kind = memory_type_of(named) if named else None
            found = await self._manager.search(self._owner, arguments["query"], memory_type=kind, limit=limit, **about)
            rows = [{**_row(one.memory), "score": one.score} for one in found]
        return rows_within(rows, self._manager.settings.limits.max_result_characters)

    async def _store(self, arguments: Mapping[str, Tree]) -> Tree:
        memory = await self._manager.store(
            self._owner,
            arguments["content"],
            memory_type_of(arguments.get("memory_type") or "fact"),
            arguments.get("metadata"),
            session=self._session,
        )
        return {
            "id": memory.id,
            "content": memory.content,
            "type": memory.memory_type.value,
            "created_at": memory.created_at.isoformat(),
        }

    async def _forget(self, arguments: Mapping[str, Tree]) -> Tree:
        memory_id = arguments["memory_id"]
        gone = await self._forget_saying(self._owner, memory_id)
        repeats = {"repeats": len(gone) - 1} if len(gone) > 1 else {}
        return {"success": bool(gone), "id": memory_id, **repeats}


def _row(memory: Memory) -> dict[str, Tree]:
    return {
        "id": memory.id,
        "content": memory.content,
        "type": memory.memory_type.value,
        "created_at": memory.created_at.isoformat(),
        "metadata": dict(memory.metadata),
    }
