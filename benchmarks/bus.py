"""Requests and replies a second: on the bus inside one process, where the goal is 5,000, and over a NATS server.

Run it with `python benchmarks/bus.py`. Over the server two connections of this process stand for two processes, so
one processor does the work of both.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import open_nats_bus
from memstory_reference.bus import Bus, InProcessBus
from memstory_reference.ports import Envelope

REQUESTS = 20_000
REQUESTS_OVER_NATS = 5_000
GOAL = 5_000


async def requests_a_second(asking: Bus, answering: Bus, *, at_once: int, requests: int) -> float:
    """Send tool calls, `at_once` of them under way at any time; return how many a second."""

    async def answer(request: Envelope) -> None:
        await answering.publish(replace(request, subject="tool.result.echo", publisher="EchoTool"))

    async def ask(number: int) -> None:
        request = Envelope(
            subject="tool.request.echo",
            payload={"args": {"topic": "user.name"}},
            publisher="Benchmark",
            owner="ann",
            request_id=str(number),
        )
        await asking.request(request, "tool.result.echo", timeout_seconds=5)

    subscription = await answering.subscribe("tool.request.echo", answer, name="EchoTool")
    began = time.perf_counter()
    for first in range(0, requests, at_once):
        await asyncio.gather(*(ask(number) for number in range(first, first + at_once)))
    rate = requests / (time.perf_counter() - began)
    await subscription.unsubscribe()
    return rate


async def over_nats(address: str, at_once: int) -> float:
    """Measure between two connections."""
    asking, answering = await open_nats_bus(address, "asking"), await open_nats_bus(address, "answering")
    rate = await requests_a_second(asking, answering, at_once=at_once, requests=REQUESTS_OVER_NATS)
    for bus in (asking, answering):
        await bus.close()
    return rate


def main() -> None:
    """Print a line for one and for 32 at once, on each bus."""
    for at_once in (1, 32):
        bus = InProcessBus()
        rate = asyncio.run(requests_a_second(bus, bus, at_once=at_once, requests=REQUESTS))
        print(f"in process, {at_once:2d} at once: {rate:8,.0f} requests/s ({rate / GOAL:.1f} x the goal of {GOAL:,})")
    with tempfile.TemporaryDirectory() as folder, EmbeddedNats(Path(folder)) as server:
        for at_once in (1, 32):
            print(f"over NATS,  {at_once:2d} at once: {asyncio.run(over_nats(server.url, at_once)):8,.0f} requests/s")


if __name__ == "__main__":
    main()
