"""Four tools over the operations of any memory, for one that announces none of its own: save, search, list, forget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from memstory.contract.target import Hit, Item, Memory, Query, Scope, ToolCall, ToolSchema, Tree
from memstory_reference.errors import InputError
from memstory_reference.tooling.local_tools import AddTool, ChangeTool, LocalTools, ReadTool, parameters

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_LIMIT = {"type": "integer", "description": "How many at most", "minimum": 1}
SAVE: Final = AddTool(
    name="save_memory",
    description="Remember something worth knowing later, in a sentence that can be understood alone.",
    parameters=parameters("content", content="What to remember"),
)
SEARCH: Final = ReadTool(
    name="search_memory",
    description="Before answering: search what is remembered, by meaning; best first.",
    parameters=parameters("query", query="What to look for", limit={**_LIMIT, "default": 5}),
)
LIST: Final = ReadTool(
    name="list_memories",
    description="List what is remembered.",
    parameters=parameters(limit={**_LIMIT, "default": 50}),
)
FORGET: Final = ChangeTool(
    name="forget_memory",
    description="Forget one memory for good.",
    parameters=parameters("memory_id", memory_id="Its id, as search_memory gives it"),
)
TOOLS: Final[Sequence[ToolSchema]] = (SAVE, SEARCH, LIST, FORGET)


async def call_memory_tool(
    memory: Memory, name: str, arguments: object, scope: Scope, forget_whole: Callable[[str], Awaitable[bool]]
) -> ToolCall:
    """Call one of the four for whom `scope` says; what is wrong with the call is the answer, in words.

    `forget_whole` deletes the memory of an id with what repeats it; False if there is none.
    """

    async def save(given: Mapping[str, Tree]) -> Tree:
        receipt = await memory.add([Item(text=given["content"])], scope)
        dropped = [one.reason or one.outcome for one in receipt.items if one.outcome == "dropped"]
        if dropped:
            raise InputError(f"this is not stored: {'; '.join(dropped)}")
        return [
            {"id": one.id, "outcome": one.outcome, **({"reason": one.reason} if one.reason else {})}
            for one in receipt.items
        ]

    async def search(given: Mapping[str, Tree]) -> Tree:
        found = await memory.search(Query(text=given["query"], top_k=given.get("limit", 5)), scope)
        return [_view(one) for one in found]

    async def list_all(given: Mapping[str, Tree]) -> Tree:
        return [_view(one) for one in await memory.list(scope, (), given.get("limit", 50))]

    async def forget(given: Mapping[str, Tree]) -> Tree:
        return {"success": await forget_whole(given["memory_id"])}

    tools = LocalTools((SAVE, save), (SEARCH, search), (LIST, list_all), (FORGET, forget))
    return await tools.call(name, arguments)


def _view(hit: Hit) -> dict[str, Tree]:
    shown = ("id", "text", "kind", "score", "created_at")
    return {name: value for name, value in asdict(hit).items() if name in shown and value is not None}
