"""A server as a child process: how it is started, reached by pipes or at a port, and ended with its own children."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import IO, Final

from memstory.child_process import exit_phrase, has_ended, kill_group, wait_for_end
from memstory.contract.errors import SetupError

LONGEST_LINE: Final = 64 * 1024 * 1024
HOST: Final = "127.0.0.1"
"""Where a server that is asked by a port listens."""

_LOOK_SECONDS: Final = 0.01
# A server at a port ignores the end of its input, which shows that its parent process is gone.
_GUARD: Final = """
exec 3<&0
"$@" 3<&- & server=$!
(read -r _; kill -TERM "$server") <&3 & reader=$!
wait "$server"; status=$?
kill "$reader" 2>/dev/null
exit "$status"
"""
_PACKAGE: Final = re.compile(r"(?P<package>(?:@[\w.-]+/)?(?P<name>\w[\w.-]*))(?:@[\w.^~-]+)?")
_INSTALL_SECONDS: Final = 60.0
"""How long npm may take to install a package; then npx is left to say itself what is wrong."""

_GRACE_SECONDS: Final = 2.0
_LAST_SECONDS: Final = 0.5
_LONGEST_TAIL: Final = 2000
_HOSTED: Final = "memstory.running.hosting.child"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A command, its folder and its environment; a server talks by its pipes, or without `by_pipes` at a port."""

    command: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    by_pipes: bool = True


class ChildServer:
    """A server that is started once and closed once.

    In the child of `host` it is in the child's process group, which a kill takes as a whole; elsewhere it has
    a process group, which `close` ends as a whole.
    """

    reader: StreamReader
    writer: StreamWriter
    """Its standard output and its standard input, once it has started by pipes."""
    port: int
    """Where it takes connections, once it has started at a port."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._is_hosted = is_hosted()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pipes: list[asyncio.BaseTransport] = []
        self._said = ""

    async def start(self) -> None:
        """Start it; raise SetupError where there is no such command."""
        launch = self._launch
        launch.cwd.mkdir(parents=True, exist_ok=True)
        # A file, not a pipe: nobody has to read it, and it outlives the server.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in close)
        command = launch.command
        if not any(name == "PATH" or name.lower().startswith("npm_") for name in launch.env):
            command = await asyncio.to_thread(program_of, tuple(command))
        try:
            self._process = self._start(command, self._errors)
        except OSError as error:
            raise SetupError(f"'{launch.command[0]}' cannot be started: {error}") from error
        if launch.by_pipes:
            await self._connect(self._process)

    async def start_at(self, port: int, seconds: float) -> bool:
        """Start it; return whether it takes connections at `port` within `seconds`. If not, it is ended."""
        listens = False
        try:
            await self.start()
            listens = await self._listens(port, seconds)
        finally:
            if not listens:
                await self.close()
        self.port = port
        return listens

    async def _listens(self, port: int, seconds: float) -> bool:
        end = monotonic() + seconds
        while not self.has_failed:
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                if monotonic() > end:
                    return False
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                writer.close()
                return not self.has_failed
        return False

    @property
    def has_failed(self) -> bool:
        """Whether it runs no longer, or has never been started."""
        return self._process is None or has_ended(self._process)

    async def close(self) -> None:
        """End it: by the end of its input, then by force, and its own children with it."""
        process, self._process = self._process, None
        try:
            if process is not None:
                if self._pipes:
                    self.writer.close()
                elif process.stdin is not None:
                    process.stdin.close()
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
        """Wait half a second at most for its end: its output ends first, and messages say how the process ended."""
        if self._process is not None:
            await wait_for_end(self._process, _LAST_SECONDS)

    def last_words(self) -> str:
        """Return how it ended and the end of what it printed on standard error."""
        return self._said if self._process is None else self._words(self._process)

    def _words(self, process: subprocess.Popen[bytes]) -> str:
        parts = []
        if has_ended(process):
            parts.append(f"its process has ended{exit_phrase(process)}")
        if self._errors is not None:
            # Not by `seek`: the server writes where this file's one position is.
            size = os.fstat(self._errors.fileno()).st_size
            read = os.pread(self._errors.fileno(), _LONGEST_TAIL, max(0, size - _LONGEST_TAIL))
            tail = read.decode(errors="replace").strip()
            parts += [f"it last printed:\n{tail}"] if tail else []
        return "; ".join(parts)

    def _start(self, words: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        launch = self._launch
        command = [_executable(words[0], launch.env), *words[1:]]
        return subprocess.Popen(  # noqa: S603  (the user's own command)
            command if launch.by_pipes else ["/bin/sh", "-c", _GUARD, "memstory-server", *command],
            cwd=launch.cwd,
            env=_environment(launch.env, is_hosted=self._is_hosted),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if launch.by_pipes else errors,
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
        if self._is_hosted:
            process.kill()
        else:
            kill_group(process.pid)
        process.wait()


@lru_cache
def program_of(command: Sequence[str]) -> Sequence[str]:
    """Return the program that `npx PACKAGE` would start, with its words; any other command, or npx at a loss, as it is.

    Each start of npx takes a second of CPU and finds the same program, which a run starts hundreds of times.
    """
    asked = [word for word in command[1:2] if word in ("-y", "--yes")]
    spec, *words = command[1 + len(asked) :] or ("",)
    named = _PACKAGE.fullmatch(spec)
    npm = shutil.which("npm")
    if command[0] != "npx" or named is None or npm is None:
        return command
    try:
        found = subprocess.run(  # noqa: S603  (the package is the one of the user's own command)
            [npm, "exec", "--yes", f"--package={spec}", "-c", 'echo "$PATH"'],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True, timeout=_INSTALL_SECONDS,
        )  # fmt: skip
        folder = Path(found.stdout.strip().partition(os.pathsep)[0])
        bins = json.loads((folder.parent / named["package"] / "package.json").read_text("utf-8"))["bin"]
        names = [named["name"]] if isinstance(bins, str) or named["name"] in bins else [*bins]
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
        return command
    program = folder / names[0] if len(names) == 1 else None
    return (str(program), *words) if program and os.access(program, os.X_OK) else command


def free_port() -> int:
    """Return a TCP port of this machine at which nobody listens now; another process may still take it first."""
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def is_hosted() -> bool:
    """Whether this process is one in which memstory hosts a target, and which it kills with its process group."""
    main = sys.modules.get("__main__")
    return getattr(getattr(main, "__spec__", None), "name", None) == _HOSTED


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
