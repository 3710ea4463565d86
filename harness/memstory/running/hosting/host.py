"""A target in its own process: it can be killed, and takes nothing with it when it hangs or crashes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import tempfile
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from importlib.metadata import distributions
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, TypeVar

from memstory.child_process import wait_until
from memstory.contract.clock import Clock
from memstory.contract.codec import decode, encode
from memstory.contract.errors import NotSupported, SetupError, TargetError
from memstory.contract.target import (
    OLDER,
    Environment,
    Item,
    Receipt,
    Request,
    Scope,
    TargetFactory,
    Tree,
    Usage,
    hints,
)
from memstory.running.hosting.process import HostProcess, start
from memstory.running.hosting.protocol import LOADED, LONGEST_LINE, error_from_json, to_line
from memstory.running.left_tasks import pass_on

Answer = TypeVar("Answer")

_GOODBYE_SECONDS = 5.0
_LAST_WORDS_SECONDS = 1.0
_LONGEST_TAIL = 2000
_MOST_REQUESTS = 5


class HostedTarget:
    """The target of `factory` in a child process; "acknowledged" means that the child's reply was read.

    `folder` is where the child's factory keeps what its targets share; a target that is opened after a kill gets the
    same one. The child has its own session, so that a kill takes its children too.
    """

    def __init__(self, factory: TargetFactory, folder: Path) -> None:
        if factory.spec is None:
            raise NotSupported("crash", "this target names no `spec`, so it cannot be run in its own process")
        self._spec = factory.spec
        self._factory = factory
        self._folder = folder
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Tree]] = {}
        self._process: HostProcess | None = None
        self._output: IO[bytes] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._writer: StreamWriter | None = None
        self._clock: Clock | None = None
        self._usage = Usage()

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock = clock
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            home = Path(env.workspace) if self._factory.isolates(env.options) else None
            ahead = _release_folder(self._factory.older_release(env.options)) if env.older else None
            sock = await self._start(home, ahead)
            reader, self._writer = await asyncio.open_connection(sock=sock, limit=LONGEST_LINE)
            self._reading = asyncio.create_task(self._read(reader))
            await self._call("open", env=env)
        except BaseException:
            # Nobody closes what did not open; a child must not be left behind, even when we are cancelled.
            await self.kill()
            raise

    async def close(self) -> None:
        patient = False
        try:
            if self.is_alive and self._reading is not None and not self._reading.done():
                await self._call("close")
            patient = True
        finally:
            # One that did not even close gets no time to say goodbye.
            await self._release(patient=patient)

    async def kill(self) -> str | None:
        """SIGKILL the child and all that it has started; what was in flight raises TargetError.

        Return how the child ended, also if that was before; None where there was none.
        """
        process = self._process
        before = process.exit_phrase() if process is not None else None
        await self._release(patient=False)
        return before or (process.exit_phrase() if process is not None else None)

    def usage(self) -> Usage:
        """Return what the child's target has used, as of its last reply."""
        usage, self._usage = self._usage, replace(self._usage, requests=())
        return usage

    @property
    def pid(self) -> int | None:
        """The number of the child; None while there is none."""
        return self._process.pid if self._process is not None else None

    @property
    def is_alive(self) -> bool:
        """Whether the child runs."""
        return self._process is not None and self._process.exit_phrase() is None

    async def _start(self, home: Path | None, ahead: Path | None) -> socket.socket:
        ours, theirs = socket.socketpair()
        # A file, not a pipe: nobody has to read it, and it outlives the child.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (closed in _release)
        try:
            with theirs:
                self._process = await start(
                    self._spec, self._folder, self._factory.preload, theirs, self._output, home=home, ahead=ahead
                )
        except TargetError as error:
            ours.close()
            raise TargetError(f"{error}{self._last_words()}") from error
        except BaseException:
            ours.close()
            raise
        return ours

    async def perform(self, request: Request[Answer]) -> Answer:
        answer = await self._call(request.op, args=request.args)
        return decode(hints(request.op)["return"], answer)  # type: ignore[no-any-return]

    async def load(self, items: Iterator[Item], scope: Scope) -> AsyncIterator[Receipt]:
        """Load as the child's target does, which gets `LOADED` items at once."""
        while batch := list(islice(items, LOADED)):
            answer = await self._call("load", args={"items": batch, "scope": scope})
            for receipt in decode(Sequence[Receipt], answer["receipts"]):
                yield receipt
            if answer["error"] is not None:
                raise error_from_json(answer["error"])

    async def _call(self, op: str, **args: Any) -> Tree:
        if self._writer is None or self._clock is None or self._reading is None or self._reading.done():
            raise TargetError(f"'{op}' on a target whose process is not running{self._last_words()}")
        number = next(self._numbers)
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(to_line({"id": number, "op": op, "now": self._clock.now().isoformat(), **encode(args)}))
            with contextlib.suppress(ConnectionError):  # The reader tells of a dead child, with its last words.
                await self._writer.drain()
            message = await reply
        finally:
            del self._waiting[number]
        usage = decode(Usage, message["usage"])
        self._usage = replace(usage, requests=(*self._usage.requests, *usage.requests)[-_MOST_REQUESTS:])
        pass_on(message["left"])
        if "error" in message:
            raise error_from_json(message["error"])
        return message["value"]

    async def _read(self, reader: StreamReader) -> None:
        ending = "the target's process ended"
        try:
            while line := await reader.readline():
                message = json.loads(line)
                reply = self._waiting.get(message["id"])
                if reply is not None and not reply.done():
                    reply.set_result(message)
        except ConnectionError:
            pass  # A killed child resets the connection; that is its end, as told below.
        except ValueError as error:
            ending = f"the target's process sent what is not an answer ({error})"
        finally:
            if self._process is not None:
                # Its socket is closed a moment before it is gone, and how it went is worth knowing.
                await _wait_for_end(self._process, _LAST_WORDS_SECONDS)
            for reply in self._waiting.values():
                if not reply.done():
                    reply.set_exception(TargetError(f"{ending}{self._last_words()}"))

    async def _release(self, *, patient: bool) -> None:
        process, self._process = self._process, None
        if process is not None:
            if patient and self._writer is not None:
                self._writer.close()  # End of file: the child stops by itself.
                await _wait_for_end(process, _GOODBYE_SECONDS)
            await process.end()
        if self._writer is not None:
            # Before the reader is waited for: a child that nobody could kill ends when it sees this.
            self._writer.close()
        if self._reading is not None:
            await self._reading
        if self._writer is not None:
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()
            self._writer = None
        if self._output is not None:
            self._output.close()
            self._output = None

    def _last_words(self) -> str:
        """Return how the child ended and the end of what it printed."""
        if self._output is None:
            return ""
        how = (self._process.exit_phrase() or "") if self._process is not None else ""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _LONGEST_TAIL))
        tail = self._output.read().decode(errors="replace").strip()
        return f"{how}; it last printed:\n{tail}" if tail else how


def _release_folder(folder: Path | None) -> Path | None:
    """Return `folder` as an absolute path.

    Raises:
        SetupError: it holds no release that differs from what is installed, of a package that was asked for by name.
    """
    if folder is None:
        return None
    found = list(distributions(path=[str(folder)]))
    # Installers mark what was named: another release of something that this one needs is no older release of it.
    named = [one for one in found if one.read_text("REQUESTED") is not None]
    there = {one.name: one.version for one in named or found}
    here = {one.name: one.version for one in distributions() if one.name in there}
    if not any(here.get(name) not in {None, version} for name, version in there.items()):
        held = "only packages of the releases that are installed" if there else "no package"
        raise SetupError(
            f"the folder {folder} of the option {OLDER} holds {held}. Fill it with an older release, such as: "
            f"uv pip install --target {folder} chromadb==1.0.20"
        )
    return folder.absolute()


async def _wait_for_end(process: HostProcess, seconds: float) -> None:
    await wait_until(lambda: process.exit_phrase() is not None, seconds)
