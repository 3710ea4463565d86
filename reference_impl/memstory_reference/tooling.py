"""Tools, what each does to the memory, calls of them by a model or an MCP client, and turns in which a model uses them.

What a tool does to the memory is its class; a model sees of each what it sees of any tool. Arguments are checked
against the schema that the model was shown, and what is wrong with a call is its answer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final, TypeAlias

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.models import ChatModel, Message, ToolRequest
from memstory.contract.target import Hit, Item, Memory, Query, Scope
from memstory.contract.values import ToolCall, ToolSchema, Tree, Turn
from memstory.models.conversation import NO_ANSWER, Talk, converse
from memstory_reference.errors import UNSTORED, InputError, StoreConflictError
from memstory_reference.text.lines import one_line, shorten
from memstory_reference.text.sentences import tells_nothing

LOG = logging.getLogger(__name__)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}

_MARK = 40
"""Room for the words that say what was cut."""

Act: TypeAlias = Callable[[Mapping[str, Tree]], Awaitable[Tree]]

Store = Callable[[str | None, Sequence[ToolCall]], Awaitable[object]]
"""Stores what the user said, with the answer and the calls that led to it; None where no answer came."""


# Classes and not a field: fields of a tool are in every recording and in the digest of every request.


class ReadTool(ToolSchema):
    """A tool that looks something up and changes no memory."""


class AddTool(ToolSchema):
    """A tool that adds a memory and loses no earlier one; the same call again may add another."""


class ChangeTool(ToolSchema):
    """A tool that replaces an earlier value, or deletes it for good; the same call again changes no more."""


def parameters(*required: str, **arguments: str | Mapping[str, Tree]) -> Mapping[str, Tree]:
    """Return the JSON Schema of a tool's arguments; one that is given by its description alone is a text.

    >>> parameters("id", id="Its id")["properties"]
    {'id': {'type': 'string', 'description': 'Its id'}}
    """
    known = {
        name: {"type": "string", "description": one} if isinstance(one, str) else one for name, one in arguments.items()
    }
    return {"type": "object", "properties": known, **({"required": [*required]} if required else {})}


def has_succeeded(call: ToolCall, tool: ToolSchema) -> bool:
    """Say whether a call was one of this tool, and did what it is for."""
    return call.name == tool.name and isinstance(call.result, Mapping) and call.result.get("success") is True


class LocalTools:
    """Tools, each with what it does with checked arguments."""

    def __init__(self, *tools: tuple[ToolSchema, Act]) -> None:
        self._tools = {schema.name: (schema, act) for schema, act in tools}

    @property
    def specs(self) -> list[ToolSchema]:
        """The tools as a model sees them."""
        return [schema for schema, _ in self._tools.values()]

    async def call(self, name: str, arguments: object) -> ToolCall:
        """Call a tool; what is wrong with the call, and errors that the memory raises on purpose, are its answer."""
        given = arguments if isinstance(arguments, Mapping) else {}
        try:
            if name not in self._tools:
                raise InputError(f"there is no tool named {name!r:.80}; there are: {', '.join(self._tools)}")
            schema, act = self._tools[name]
            return ToolCall(name=name, args=given, result=await act(check_arguments(schema, arguments)))
        except (UnavailableError, StoreConflictError) as error:
            return ToolCall(name=name, args=given, error=f"Memory unavailable: {one_line(str(error))}")
        except MemstoryError as error:
            return ToolCall(name=name, args=given, error=str(error))


def check_arguments(spec: ToolSchema, arguments: object) -> dict[str, Tree]:
    """Return the arguments if they fit the tool's schema, else raise InputError with all that is wrong.

    Null stands for an argument that was left out: models fill in both of two optional arguments.
    """
    if not isinstance(arguments, Mapping):
        raise InputError(f"{spec.name}: the arguments must be an object, not {_type_name(arguments)}")
    known: Mapping[str, Mapping[str, Tree]] = spec.parameters.get("properties", {})
    given = {str(name): value for name, value in arguments.items() if value is not None}
    problems = [f"{name} is missing" for name in spec.parameters.get("required", ()) if name not in given]
    problems += [f"{name[:40]!r} is not an argument" for name in given if name not in known]
    problems += [
        f"{name} must be {known[name]['type']}, not {_type_name(value)}"
        for name, value in given.items()
        if name in known and not _fits(value, known[name].get("type"))
    ]
    if problems:
        raise InputError(f"{spec.name}: {'; '.join(problems)}. Arguments: {', '.join(known)}")
    return given


def _fits(value: Tree, wanted: str | None) -> bool:
    if wanted is None:
        return True
    # To Python, True is an int; to JSON it is not.
    return isinstance(value, _TYPES[wanted]) and (wanted == "boolean" or not isinstance(value, bool))


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next((name for name, types in _TYPES.items() if isinstance(value, types)), type(value).__name__)


def rows_within(rows: Sequence[dict[str, Tree]], most: int) -> list[dict[str, Tree]]:
    """Return the first rows whose JSON fits into `most` characters; the last may have its `content` shortened."""
    kept, room = list[dict[str, Tree]](), most - len("[]")
    for row in rows:
        fitting = row if _size(row) <= room else _cut(row, room)
        room -= _size(fitting)
        if room < 0:
            break
        kept.append(fitting)
    return kept


def _cut(row: dict[str, Tree], room: int) -> dict[str, Tree]:
    bare = {**row, "content": ""}
    if "metadata" in bare and _size(bare) > room / 2:
        bare["metadata"] = {}
    characters = room - _size(bare)
    cut = {**bare, "content": shorten(row["content"], max(_MARK, characters))}
    while _size(cut) > room and characters > _MARK:
        # JSON writes some characters as two or six.
        characters //= 2
        cut["content"] = shorten(row["content"], max(_MARK, characters))
    return cut


def _size(row: Mapping[str, Tree]) -> int:
    return len(json.dumps(row, ensure_ascii=False)) + len(", ")


async def take_turn(
    chat: ChatModel,
    prompt: Sequence[Message],
    *,
    told: str,
    tools: LocalTools,
    calls: int,
    store: Store,
    is_apart: Callable[[ToolCall], bool],
) -> tuple[Turn, Talk]:
    """Return the answer, and how the model came to it; a model that fails raises, and what the user told is stored.

    A turn in which a call `is_apart` is not stored: what was to be forgotten is mostly named in it. Nor does one that
    cannot be stored cost the user the answer, whose notes say so.
    """

    async def use(request: ToolRequest) -> ToolCall:
        return await tools.call(request.name, request.arguments)

    async def keep(answer: str | None, used: Sequence[ToolCall]) -> list[str]:
        try:
            await store(answer, used)
        except (InputError, UnavailableError) as error:
            LOG.warning("a turn was not stored: %s", error)
            return [f"this turn was not stored: {str(error).removeprefix(UNSTORED)}"]
        return []

    async def keep_unanswered(used: Sequence[ToolCall]) -> bool | None:
        return None if tells_nothing(told) or any(map(is_apart, used)) else not await keep(None, used)

    talk = await converse(chat, prompt, tools=lambda: tools.specs, use=use, calls=calls, keep=keep_unanswered)
    answer = talk.reply.content.strip() or NO_ANSWER
    notes = [] if any(map(is_apart, talk.outcomes)) else await keep(answer, talk.outcomes)
    return Turn(answer=answer, tool_calls=talk.outcomes, notes=notes), talk


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
