"""`memstory-reference mcp`: the manager memory as an MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

from memstory_reference import bootstrap
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.errors import SetupProblem
from memstory_reference.ports import Json
from memstory_reference.systems.manager.settings import ManagerSettings, default_manager, read_manager
from memstory_reference.systems.manager.system import ManagerPorts, ManagerSystem

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
    mcp_server = _mcp_server()
    system = await _system(settings)
    # One client starts one process: that is one session of the memory.
    session = random_id()

    async def call(name: str, arguments: Mapping[str, Json]) -> Json:
        called = await system.call_tool(name, arguments, owner=owner, session=session)
        return mcp_server.ToolAnswer(result=called.result, error=called.error)

    try:
        await system.open()
        await mcp_server.serve(mcp_server.tool_server(NAME, version("memstory"), system.tools(), call))
    finally:
        await system.close()
    return 0


async def _system(settings: ManagerSettings) -> ManagerSystem:
    embedder = bootstrap.make_embedder(settings.embedding_model, ollama_host=settings.ollama_host)
    ports = ManagerPorts(
        clock=SystemClock(),
        embedder=embedder,
        store=await bootstrap.open_store(settings.folder, embedder),
        chat=bootstrap.make_chat(settings.chat, embedder, ollama_host=settings.ollama_host),
        new_id=random_id,
    )
    return bootstrap.manager(settings, ports)


def _mcp_server() -> ModuleType:
    try:
        # The SDK is an extra of its own, and slow to import.
        from memstory_reference.adapters import mcp_server  # noqa: PLC0415
    except ModuleNotFoundError as problem:
        if problem.name is None or not problem.name.startswith("mcp"):
            raise
        raise SetupProblem("the MCP SDK is missing. Install it with: pip install 'memstory[mcp]'") from problem
    return mcp_server
