"""`memstory-reference serve`: one part of a memory system in its own process, on a bus or over HTTP."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.bus.permissions import server_configuration
from memstory_reference.commands.desk import chosen_settings, chosen_settings_of
from memstory_reference.commands.memory_web import MemoryWeb, memory_page
from memstory_reference.composition.declaration import MemoryPorts, Models
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.extras import http_service, open_bus
from memstory_reference.composition.layers import open_layers
from memstory_reference.composition.topics import open_topics_service
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.process import LayersPart
from memstory_reference.systems.layers.settings import LayersSettings
from memstory_reference.systems.topics.process import AgentPart, MemoryPart, ToolsPart
from memstory_reference.systems.topics.settings import TopicsSettings

if TYPE_CHECKING:
    from memstory_reference.adapters.servers.nats_bus import NatsBus


HIGHEST_PORT = 65_535


async def serve_http(parsed: argparse.Namespace) -> int:
    """Serve until a signal ends it: what was asked is answered, then sessions end."""
    if not 1 <= parsed.port <= HIGHEST_PORT:
        raise InputError(f"--port {parsed.port} is not allowed; allowed: 1 to {HIGHEST_PORT}")
    web = http_service()
    system, settings = chosen_settings(parsed)
    memory = await system.open(settings, Models())
    try:
        acts = [web.Endpoint(method=how, path=path, answer=answer) for how, path, answer in MemoryWeb(memory).acts()]
        app = web.http_app(acts, memory_page(), parsed.host, parsed.port)
        server = web.HttpServer(app, parsed.host, parsed.port, lambda: _announce(parsed))
        on_signals(server.stop)
        await server.serve()
        await memory.shut_down()
    finally:
        await memory.close()
    return 0


def _announce(parsed: argparse.Namespace) -> None:
    sys.stdout.write(f"{parsed.system}: http://{parsed.host}:{parsed.port}/ shows what is remembered; Ctrl-C ends it\n")
    sys.stdout.flush()


def on_signals(stop: Callable[[], None]) -> None:
    """Have a signal end this process only when it has finished what it took; a second one ends it at once."""
    loop = asyncio.get_running_loop()

    def once() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, once)


class Part(Protocol):
    """What a process serves."""

    async def start(self) -> None:
        """Serve from now on."""
        ...

    async def stop(self) -> None:
        """Finish what was taken, and take no more."""
        ...

    async def come_back(self) -> None:
        """Do what is to be done when the bus was away."""
        ...


Opened = Callable[[argparse.Namespace, "NatsBus"], AbstractAsyncContextManager[Part]]


async def _serve(parsed: argparse.Namespace, opened: Opened) -> int:
    """Serve until a signal ends it; what was taken is finished first."""
    stopped = asyncio.Event()
    async with open_bus(parsed.bus, parsed.part) as bus, opened(parsed, bus) as part:
        await part.start()
        try:
            bus.connection.when_back.append(part.come_back)
            on_signals(stopped.set)
            sys.stdout.write(f"{parsed.part}: serving on {bus.connection.place}; Ctrl-C ends it\n")
            sys.stdout.flush()
            await _first(stopped.wait(), bus.connection.wait_closed())
        finally:
            await part.stop()
    if not stopped.is_set():
        raise UnavailableError(f"the bus at {bus.connection.place} has closed the connection for good")
    return 0


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    tasks = [asyncio.create_task(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _memory(parsed: argparse.Namespace, bus: NatsBus) -> AsyncIterator[Part]:
    settings = chosen_settings_of(parsed, TopicsSettings)
    service = await open_topics_service(settings, MemoryPorts(embedder=embedder_of(settings)))
    try:
        yield MemoryPart(service, bus, random_id)
    finally:
        await service.close()


@asynccontextmanager
async def _tools(parsed: argparse.Namespace, bus: NatsBus) -> AsyncIterator[Part]:
    settings = chosen_settings_of(parsed, TopicsSettings)
    yield ToolsPart(bus, settings=settings, new_id=random_id)


@asynccontextmanager
async def _agent(parsed: argparse.Namespace, bus: NatsBus) -> AsyncIterator[Part]:
    settings = chosen_settings_of(parsed, TopicsSettings)
    yield AgentPart(bus, chat=Models().chat_of(settings), new_id=random_id, settings=settings)


@asynccontextmanager
async def _layers(parsed: argparse.Namespace, bus: NatsBus) -> AsyncIterator[Part]:
    settings = chosen_settings_of(parsed, LayersSettings)
    service = await open_layers(settings, Models().ports(settings))
    try:
        yield LayersPart(service, bus, new_id=random_id)
        await service.shut_down()
    finally:
        await service.close()


PARTS: Mapping[str, Opened] = {"memory": _memory, "tools": _tools, "agent": _agent, "layers": _layers}


def run(parsed: argparse.Namespace) -> int:
    """Serve the part that was typed, or print what a server needs to know of all."""
    if parsed.part == "config":
        sys.stdout.write(server_configuration(lambda _: secrets.token_urlsafe(24), parsed.host, parsed.port))
        return 0
    return asyncio.run(serve_http(parsed) if parsed.part == "http" else _serve(parsed, PARTS[parsed.part]))
