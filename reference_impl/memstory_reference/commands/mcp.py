"""`memstory-reference mcp`: a memory as an MCP server on stdin and stdout; any of the six."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from importlib.metadata import version

from memstory.contract.target import Scope
from memstory.contract.values import ToolCall, Tree
from memstory_reference.adapters.machine import random_id
from memstory_reference.composition.extras import mcp_sdk
from memstory_reference.composition.systems import system_named
from memstory_reference.input_checks import DEFAULT_OWNER, checked_owner

NAME = "memory"
CALLER = "McpClient"


def run(parsed: argparse.Namespace) -> int:
    """Serve until the client goes; return the exit code."""
    return asyncio.run(serve(parsed))


async def serve(parsed: argparse.Namespace) -> int:
    """Serve until the client goes; return the exit code."""
    system = system_named(parsed.system)
    settings = system.settings(parsed.config, {}, "--path", parsed.path)
    # One client starts one process: that is one session of the memory.
    scope = Scope(user=checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner), session=random_id())
    memory = await system.open(settings)
    try:
        sdk = mcp_sdk()

        async def call(name: str, arguments: Mapping[str, Tree]) -> ToolCall:
            return await memory.tool(name, arguments, scope, CALLER)

        await sdk.serve(sdk.tool_server(NAME, version("memstory"), await memory.tools(), call))
    finally:
        await memory.close()
    return 0
