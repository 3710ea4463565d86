"""Tools that are called in this process, by a model or an MCP client: what is wrong with a call is its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from memstory.contract.errors import MemstoryError, UnavailableError
from memstory.contract.values import ToolCall, ToolSchema, Tree
from memstory_reference.errors import InputError
from memstory_reference.tooling.arguments import check_arguments

LocalTools = Mapping[str, tuple[ToolSchema, Callable[[Mapping[str, Tree]], Awaitable[Tree]]]]
"""Each tool by its name: what a model sees of it, and what it does with checked arguments."""


async def call_local_tool(tools: LocalTools, name: str, arguments: object) -> ToolCall:
    """Call a tool; every error that the memory raises on purpose becomes words."""
    given = arguments if isinstance(arguments, Mapping) else {}
    try:
        if name not in tools:
            raise InputError(f"there is no tool named {name!r:.80}; there are: {', '.join(tools)}")
        spec, function = tools[name]
        return ToolCall(name=name, args=given, result=await function(check_arguments(spec, arguments)))
    except UnavailableError as error:
        return ToolCall(name=name, args=given, error=f"Memory unavailable: {error}")
    except MemstoryError as error:
        return ToolCall(name=name, args=given, error=str(error))
