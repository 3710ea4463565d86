"""Tools, what each does to the memory, and calls of them in this process, by a model or an MCP client.

What a tool does to the memory is its class; a model sees of each what it sees of any tool. Arguments are checked
against the schema that the model was shown, and what is wrong with a call is its answer.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.values import ToolCall, ToolSchema, Tree
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.text.lines import one_line, shorten

_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


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


_MARK = 40
"""Room for the words that say what was cut."""

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


Act: TypeAlias = Callable[[Mapping[str, Tree]], Awaitable[Tree]]


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
