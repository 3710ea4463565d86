"""Requests and replies a second on the bus inside one process; the goal is 5,000.

Run it with `python benchmarks/bus.py`.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from memstory_reference.bus import InProcessBus
from memstory_reference.ports import Envelope

REQUESTS = 20_000
GOAL = 5_000


async def requests_a_second(at_once: int) -> float:
    """Send REQUESTS tool calls, `at_once` of them under way at any time; return how many a second."""
    bus = InProcessBus()

    async def answer(request: Envelope) -> None:
        await bus.publish(replace(request, subject="tool.result.echo", publisher="EchoTool"))

    async def ask(number: int) -> None:
        request = Envelope(
            subject="tool.request.echo",
            payload={"args": {"topic": "user.name"}},
            publisher="Benchmark",
            owner="ann",
            request_id=str(number),
        )
        await bus.request(request, "tool.result.echo", timeout_seconds=5)

    await bus.subscribe("tool.request.echo", answer, name="EchoTool")
    began = time.perf_counter()
    for first in range(0, REQUESTS, at_once):
        await asyncio.gather(*(ask(number) for number in range(first, first + at_once)))
    return REQUESTS / (time.perf_counter() - began)


def main() -> None:
    """Print a line for one and for 32 at once."""
    for at_once in (1, 32):
        rate = asyncio.run(requests_a_second(at_once))
        print(f"bus, {at_once:2d} at once: {rate:8,.0f} requests/s ({rate / GOAL:.1f} x the goal of {GOAL:,})")


if __name__ == "__main__":
    main()
