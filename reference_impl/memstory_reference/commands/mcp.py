"""`memstory-reference mcp`: a memory as an MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from memstory.contract.values import ToolCall, ToolSchema, Tree
from memstory.models.ollama_address import ollama_host
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.memory.opened_turns import open_settings
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import MINILM, embedder_of, make_embedder
from memstory_reference.composition.extras import mcp_sdk
from memstory_reference.composition.manager import open_manager
from memstory_reference.composition.observations import open_observations
from memstory_reference.composition.pipeline import open_pipeline_system
from memstory_reference.composition.topics import open_topics
from memstory_reference.errors import InputError
from memstory_reference.systems.manager.settings import default_manager, read_manager
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.run_tools import SPECS, RunTools
from memstory_reference.systems.observations.service import ObservationService
from memstory_reference.systems.pipeline.settings import default_pipeline, read_pipeline
from memstory_reference.systems.topics.settings import default_topics, read_topics
from memstory_reference.systems.topics.system import TopicsSystem
from memstory_reference.systems.turns.settings import default_turns, read_turns

NAME = "memory"


class Served(Protocol):
    """A system with tools."""

    def tools(self) -> Sequence[ToolSchema]:
        """Return the tools as a model sees them."""
        ...

    async def call_tool(self, name: str, arguments: object, *, owner: str, session: str) -> ToolCall:
        """Call a tool for an owner."""
        ...

    async def close(self) -> None:
        """Release the memory."""
        ...


async def _manager(parsed: argparse.Namespace) -> Served:
    settings = read_manager(parsed.config) if parsed.config else default_manager()
    settings = settings if parsed.path is None else settings.changed({"path": parsed.path}, "--path")
    embedder = embedder_of(settings)
    return await open_manager(settings, folder=settings.folder, embedder=embedder, chat=chat_of(settings))


async def _pipeline(parsed: argparse.Namespace) -> Served:
    settings = read_pipeline(parsed.config) if parsed.config else default_pipeline()
    settings = settings if parsed.path is None else settings.changed({"path": parsed.path}, "--path")
    return await open_pipeline_system(settings, embedder=embedder_of(settings), chat=chat_of(settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRuns:
    """The observations, whose tools know no sessions."""

    service: ObservationService

    def tools(self) -> Sequence[ToolSchema]:
        return SPECS

    async def call_tool(self, name: str, arguments: object, *, owner: str, session: str) -> ToolCall:
        return await RunTools(self.service, owner).call(name, arguments)

    async def close(self) -> None:
        await self.service.close()


async def _observations(parsed: argparse.Namespace) -> Served:
    if parsed.path is None or parsed.config is not None:
        raise InputError("--system observations needs --path FOLDER, and has no --config")
    service = await open_observations(
        Path(parsed.path),
        embedder=make_embedder(MINILM, ollama_host=ollama_host()),
        chat=None,
        clock=SystemClock(),
        new_id=random_id,
        config=ObservationsConfig(),
    )
    return ServedRuns(service=service)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTopics:
    """The topics system, which wants to know who calls a tool."""

    system: TopicsSystem

    def tools(self) -> Sequence[ToolSchema]:
        return self.system.tools()

    async def call_tool(self, name: str, arguments: Tree, *, owner: str, session: str) -> ToolCall:
        return await self.system.call_tool(name, arguments, caller="McpClient", owner=owner, session_id=session)

    async def close(self) -> None:
        await self.system.close()


async def _topics(parsed: argparse.Namespace) -> Served:
    settings = read_topics(parsed.config) if parsed.config else default_topics()
    settings = settings if parsed.path is None else settings.changed({"chroma_path": parsed.path}, "--path")
    return ServedTopics(system=await open_topics(settings, embedder=embedder_of(settings), chat=chat_of(settings)))


async def _turns(parsed: argparse.Namespace) -> Served:
    settings = read_turns(parsed.config) if parsed.config else default_turns()
    return await open_settings(settings if parsed.path is None else settings.changed({"store": parsed.path}, "--path"))


SYSTEMS: Mapping[str, Callable[[argparse.Namespace], Awaitable[Served]]] = {
    "manager": _manager,
    "observations": _observations,
    "topics": _topics,
    "pipeline": _pipeline,
    "turns": _turns,
}


def run(parsed: argparse.Namespace) -> int:
    """Serve until the client goes; return the exit code."""
    return asyncio.run(serve(parsed))


async def serve(parsed: argparse.Namespace) -> int:
    """Serve until the client goes; return the exit code."""
    # One client starts one process: that is one session of the memory.
    session = random_id()
    system = await SYSTEMS[parsed.system](parsed)
    try:
        sdk = mcp_sdk()

        async def call(name: str, arguments: Mapping[str, Tree]) -> Tree:
            called = await system.call_tool(name, arguments, owner=parsed.owner, session=session)
            return sdk.ToolAnswer(result=called.result, error=called.error)

        await sdk.serve(sdk.tool_server(NAME, version("memstory"), system.tools(), call))
    finally:
        await system.close()
    return 0
