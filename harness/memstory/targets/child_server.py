"""A server that is started as a child process: found, fed, listened to, and ended with all that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from memstory.child_process import has_ended, how_it_ended, wait_for_end
from memstory.contract.errors import SetupError

LONGEST_LINE: Final = 64 * 1024 * 1024
_GRACE_SECONDS: Final = 2.0
_LAST_SECONDS: Final = 0.5
_LONGEST_TAIL: Final = 2000
_HOST: Final = "memstory.running.hosting.child"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start, and where."""

    command: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)


class ChildServer:
    """One running server.

    In the child of `host` it is in the child's process group, which a kill takes as a whole; elsewhere it has
    a process group, which `stop` ends as a whole.
    """

    reader: StreamReader
    writer: StreamWriter
    """Its standard output and its standard input, once it has started."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._is_hosted = is_hosted()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pipes: list[asyncio.BaseTransport] = []
        self._said = ""

    async def start(self) -> None:
        """Start it; a command that is not there is a SetupError."""
        launch = self._launch
        launch.cwd.mkdir(parents=True, exist_ok=True)
        # A file, not a pipe: nobody has to read it, and it outlives the server.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in stop)
        try:
            self._process = self._start(self._errors)
        except OSError as error:
            raise SetupError(f"'{launch.command[0]}' cannot be started: {error}") from error
        await self._connect(self._process)

    async def stop(self) -> None:
        """End it: by the end of its input, then by force, and its own children with it."""
        process, self._process = self._process, None
        try:
            if process is not None:
                if self._pipes:
                    self.writer.close()
                await wait_for_end(process, _GRACE_SECONDS)
        finally:
            # Here, also when we are cancelled: what it started must not outlive it.
            if process is not None:
                self._said = self._words(process)
                self._kill(process)
            for pipe in self._pipes:
                pipe.close()
            if self._errors is not None:
                self._errors.close()
                self._errors = None

    async def settle(self) -> None:
        """Return when it has ended, or soon: its output ends a little before it does, and its end is worth telling."""
        if self._process is not None:
            await wait_for_end(self._process, _LAST_SECONDS)

    def last_words(self) -> str:
        """Return how it ended and the end of what it printed on standard error."""
        return self._said if self._process is None else self._words(self._process)

    def _words(self, process: subprocess.Popen[bytes]) -> str:
        parts = []
        if has_ended(process):
            parts.append(f"its process has ended{how_it_ended(process)}")
        if self._errors is not None:
            # Not by `seek`: the server writes where this file's one position is.
            size = os.fstat(self._errors.fileno()).st_size
            read = os.pread(self._errors.fileno(), _LONGEST_TAIL, max(0, size - _LONGEST_TAIL))
            tail = read.decode(errors="replace").strip()
            parts += [f"it last printed:\n{tail}"] if tail else []
        return "; ".join(parts)

    def _start(self, errors: IO[bytes]) -> subprocess.Popen[bytes]:
        launch = self._launch
        return subprocess.Popen(  # noqa: S603  (the user's own command)
            [_executable(launch.command[0], launch.env), *launch.command[1:]],
            cwd=launch.cwd,
            env=_environment(launch.env, is_hosted=self._is_hosted),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=not self._is_hosted,
        )

    async def _connect(self, process: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self.reader = StreamReader(limit=LONGEST_LINE)
        reading, _ = await loop.connect_read_pipe(lambda: StreamReaderProtocol(self.reader), process.stdout)
        writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
        self.writer = StreamWriter(writing, protocol, None, loop)
        self._pipes = [reading, writing]

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            if self._is_hosted:
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_hosted() -> bool:
    """Whether this process is the child of `host`, which is killed with its whole group."""
    main = sys.modules.get("__main__")
    return getattr(getattr(main, "__spec__", None), "name", None) == _HOST


def _executable(command: str, env: Mapping[str, str]) -> str:
    """Return the path of a command: on PATH, or beside our own interpreter, as tools in a virtual environment are."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(command, path=env.get("PATH")) or shutil.which(command, path=beside)
    if found is None:
        raise SetupError(f"the command '{command}' is not found; install it, or write its whole path")
    return found


def _environment(more: Mapping[str, str], *, is_hosted: bool) -> Mapping[str, str]:
    ours = dict(os.environ)
    if is_hosted:
        # The host's parent put its own modules there; a server with another Python must not find them.
        ours.pop("PYTHONPATH", None)
    return {**ours, **more}
