"""`memstory-reference serve http`: a memory over HTTP on this machine, with a page of what is remembered."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable

from memstory_reference.commands.desk import chosen_settings
from memstory_reference.commands.memory_web import MemoryWeb, memory_page
from memstory_reference.composition.extras import http_service
from memstory_reference.composition.systems import Models
from memstory_reference.errors import InputError

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
