"""What the proxy adds to a call that it replays: `python benchmarks/proxy.py`.

Prints the median time of a replayed call, and of the same call to a server that answers with fixed bytes, which is what
the client and the protocol cost by themselves; in turns. The goal is a ratio of the processor's times, for on a busy
machine the clock says little, and a slow one takes longer for both.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Mapping

import httpx

from memstory.contract.values import Tree
from memstory.models.answering import Answer, Replayer
from memstory.models.proxy import Proxy
from memstory.models.proxy_recording import RecordedCall, blank_request

GOAL = 2.0
CALLS = 400
BODY = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "You keep what is worth knowing. " * 60},
        {"role": "user", "content": "Note 0b6f2c1e-1111-2222-3333-444455556666 of 2026-01-02: I moved to Porto."},
    ],
}
MESSAGE = {"role": "assistant", "content": "y" * 400}
REPLY = {"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": MESSAGE}]}


class Fixed:
    """Answers with the same, whatever is blank_request."""

    async def answer(self, path: str, body: Mapping[str, Tree], key: str | None) -> Answer:
        """Return it."""
        return Answer(status=200, body=REPLY, how="fixed")

    async def close(self) -> None:
        """Release nothing."""


def main() -> int:
    """Return 1 where the goal is missed."""
    request = blank_request("chat/completions", BODY)
    calls = [RecordedCall(key=request.key, path=request.path, request=request.body, answer=REPLY)]
    calls += [
        RecordedCall(key=f"other{number}", path=request.path, request=request.body, answer=REPLY)
        for number in range(500)
    ]
    taken: dict[str, list[float]] = {"replayed": [], "fixed": []}
    worked: dict[str, list[float]] = {"replayed": [], "fixed": []}
    with Proxy(Replayer(calls)) as replaying, Proxy(Fixed()) as fixed, httpx.Client() as client:
        servers = {"replayed": replaying.url, "fixed": fixed.url}
        for _ in range(CALLS):
            for name, url in servers.items():
                begun, used = time.perf_counter(), time.process_time()
                client.post(f"{url}/chat/completions", json=BODY).raise_for_status()
                taken[name].append(time.perf_counter() - begun)
                worked[name].append(time.process_time() - used)
    for name in taken:
        clock, processor = (statistics.median(of[name]) * 1000 for of in (taken, worked))
        print(f"{name}: p50 {clock:.2f} ms, of which the processor {processor:.2f} ms")
    ratio = statistics.median(worked["replayed"]) / statistics.median(worked["fixed"])
    print(f"a replayed call takes {ratio:.2f} x the processor's time of the other (goal: at most {GOAL:g} x)")
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
