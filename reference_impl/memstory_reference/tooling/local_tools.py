"""Tools that are called in this process, by a model or an MCP client: what is wrong with a call is its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.values import ToolCall, ToolSchema, Tree
from memstory_reference.errors import InputError
from memstory_reference.tooling.arguments import check_arguments

Act: TypeAlias = Callable[[Mapping[str, Tree]], Awaitable[Tree]]


class LocalTools:
    """Tools, each with what it does with checked arguments."""

    def __init__(self, *tools: tuple[ToolSchema, Act]) -> None:
        self._tools = {schema.name: (schema, act) for schema, act in tools}

    async def call(self, name: str, arguments: object) -> ToolCall:
        """Call a tool; what is wrong with the call, and errors that the memory raises on purpose, are its answer."""
        given = arguments if isinstance(arguments, Mapping) else {}
        try:
            if name not in self._tools:
                raise InputError(f"there is no tool named {name!r:.80}; there are: {', '.join(self._tools)}")
            schema, act = self._tools[name]
            return ToolCall(name=name, args=given, result=await act(check_arguments(schema, arguments)))
        except UnavailableError as error:
            return ToolCall(name=name, args=given, error=f"Memory unavailable: {error}")
        except MemstoryError as error:
            return ToolCall(name=name, args=given, error=str(error))
