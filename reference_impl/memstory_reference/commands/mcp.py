"""`memstory-reference mcp`: the manager memory as an MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.extras import mcp_sdk
from memstory_reference.composition.manager import open_manager
from memstory_reference.ports import Tree
from memstory_reference.systems.manager.settings import ManagerSettings, default_manager, read_manager

NAME = "memory"
DEFAULT_OWNER = "default"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "mcp",
        help="serve the manager memory to an MCP client over stdin and stdout",
        description="Serve search_memories, store_memory and forget_memory to the MCP client that starts this command.",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as YAML, under `memory:`")
    parser.add_argument("--path", metavar="FOLDER", help="where the memory lies, instead of what the settings say")
    parser.add_argument(
        "--owner", default=DEFAULT_OWNER, metavar="NAME", help=f"whose memories they are (default: {DEFAULT_OWNER})"
    )
    parser.set_defaults(run=lambda parsed: asyncio.run(serve(settings_of(parsed), parsed.owner)))


def settings_of(parsed: argparse.Namespace) -> ManagerSettings:
    """Return the settings of the file, if one is given, with what the command line says."""
    settings = read_manager(parsed.config) if parsed.config else default_manager()
    return settings if parsed.path is None else settings.changed({"path": parsed.path}, "--path")


async def serve(settings: ManagerSettings, owner: str) -> int:
    """Serve until the client goes; return the exit code."""
    sdk = mcp_sdk()
    # One client starts one process: that is one session of the memory.
    session = random_id()

    async def call(name: str, arguments: Mapping[str, Tree]) -> Tree:
        called = await system.call_tool(name, arguments, owner=owner, session=session)
        return sdk.ToolAnswer(result=called.result, error=called.error)

    embedder = embedder_of(settings)
    chat = chat_of(settings)
    system = await open_manager(settings, folder=settings.folder, embedder=embedder, chat=chat)
    try:
        await sdk.serve(sdk.tool_server(NAME, version("memstory"), system.tools(), call))
    finally:
        await system.close()
    return 0
