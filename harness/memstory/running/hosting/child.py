"""The child of `host`: one target that answers over an inherited socket.

Run as `python -m memstory.running.hosting.child FD MODULE:CLASS FOLDER`, or forked from `nursery`; the end of the
socket's file is the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread

from memstory.contract.clock import StoryClock
from memstory.contract.codec import decode, encode
from memstory.contract.errors import TargetError
from memstory.contract.target import (
    Connection,
    Environment,
    Item,
    Receipt,
    Request,
    Scope,
    Target,
    TargetFactory,
    Tree,
    Usage,
    hints,
)
from memstory.running.hosting.guarded import GuardedTarget
from memstory.running.hosting.protocol import LONGEST_LINE, error_to_json, to_line
from memstory.running.left_tasks import LeftTasks
from memstory.targets.discovery import load_spec, vendors_named

_LIFECYCLE = frozenset({"open", "close"})
_GOODBYE_SECONDS = 10.0


class Child:
    """Serves the requests of one parent. Open and close run in one task, as some vendors demand; all else at once."""

    def __init__(self, spec: str, folder: Path, reader: StreamReader, writer: StreamWriter) -> None:
        self._spec = spec
        self._folder = folder
        self._factory: TargetFactory | None = None
        self._reader = reader
        self._writer = writer
        self._clock: StoryClock | None = None
        self._target: Connection | None = None
        self._busy: set[asyncio.Task[None]] = set()
        self._lifecycle: asyncio.Queue[Tree] = asyncio.Queue()
        self._left = LeftTasks()

    async def serve(self) -> None:
        """Answer until the parent goes away."""
        reading = asyncio.create_task(self._read())
        try:
            while (request := await self._lifecycle.get()) is not None:
                await self._answer(request)
            await reading
        finally:
            if self._factory is not None:
                await self._factory.stop()

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError):
            while line := await self._reader.readline():
                request = json.loads(line)
                if request["op"] in _LIFECYCLE:
                    self._lifecycle.put_nowait(request)
                else:
                    task = asyncio.create_task(self._answer(request))
                    self._busy.add(task)
                    task.add_done_callback(self._busy.discard)
        self._lifecycle.put_nowait(None)

    async def _answer(self, request: Tree) -> None:
        reply = {"id": request["id"]}
        try:
            with self._left.watch():
                reply["value"] = encode(await self._do(request))
        except BaseException as error:  # noqa: BLE001  (carried to the parent, which raises it again)
            reply["error"] = error_to_json(error)
        reply["usage"] = encode(Usage() if self._target is None else self._target.usage())
        reply["left"] = await self._left.warnings() if request["op"] == "close" else []
        self._writer.write(to_line(reply))
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def _do(self, request: Tree) -> object:
        op, now = request["op"], datetime.fromisoformat(request["now"])
        if op == "open":
            with vendors_named(self._spec):
                await self._open(decode(Environment, request["env"]), now)
            return None
        if self._target is None or self._clock is None:
            raise TargetError(f"'{op}' before 'open'")
        if now > self._clock.now():
            await self._clock.advance_to(now, partial(self._target.perform, Request.of(Target.settle)))
        if op == "close":
            await self._target.close()
            return None
        if op == "load":
            items, scope = (decode(hints("add")[name], request["args"][name]) for name in ("items", "scope"))
            return await _loaded(self._target, items, scope)
        args = {name: decode(hints(op)[name], value) for name, value in request["args"].items()}
        asked: Request[object] = Request(op, args)
        return await self._target.perform(asked)

    async def _open(self, env: Environment, now: datetime) -> None:
        # Here and not before the first request, so that the parent gets a failure like any other error.
        if self._factory is None:
            factory = load_spec(self._spec)
            await factory.start(self._folder)
            self._factory = factory
        able = self._factory.abilities(env.options)
        target, self._clock = GuardedTarget(self._factory.target(), able), StoryClock(now)
        await target.open(env, self._clock)
        self._target = target


async def _loaded(target: Connection, items: Sequence[Item], scope: Scope) -> Mapping[str, object]:
    """Return the receipts, and what ended the load, if anything did: what came before that is kept."""
    receipts: list[Receipt] = []
    try:
        async for receipt in target.load(iter(items), scope):
            receipts.append(receipt)  # noqa: PERF401  (what came before an error is kept)
    except Exception as error:  # noqa: BLE001  (carried to the parent, which raises it again)
        return {"receipts": receipts, "error": error_to_json(error)}
    return {"receipts": receipts, "error": None}


def _end_with_parent(descriptor: int) -> None:
    """Kill this process and what it has started some time after the parent has gone, whatever it hangs in."""
    gone = select.poll()
    gone.register(descriptor, select.POLLHUP | getattr(select, "POLLRDHUP", 0))
    gone.poll()
    time.sleep(_GOODBYE_SECONDS)
    os.killpg(0, signal.SIGKILL)


def run(descriptor: int, spec: str, folder: Path) -> None:
    """Serve over the socket `descriptor` until it ends."""
    Thread(target=_end_with_parent, args=(descriptor,), daemon=True).start()
    # What a library prints must not look like an answer of ours on standard output.
    os.dup2(2, 1)
    asyncio.run(_serve(descriptor, spec, folder))


async def _serve(descriptor: int, spec: str, folder: Path) -> None:
    connection = socket.socket(fileno=descriptor)
    reader, writer = await asyncio.open_connection(sock=connection, limit=LONGEST_LINE)
    await Child(spec, folder, reader, writer).serve()


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
