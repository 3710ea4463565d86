"""The process of a hosted target: started cold, or forked from a nursery that has imported what it needs."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, TypeAlias

from memstory.child_process import end_of, kill_group, wait_until
from memstory.contract.errors import SetupError, TargetError
from memstory.contract.target import Tree
from memstory.running.hosting.protocol import to_line

_GOODBYE_SECONDS = 5.0
_REFUSED = (
    "the modules that the target's `preload` (of a class: `memstory_preload` in its module) names start threads "
    "({threads}), which a fork loses: take the one that does out of it"
)


async def start(
    spec: str,
    folder: Path,
    preload: Sequence[str],
    connection: socket.socket,
    output: IO[bytes],
    *,
    home: Path | None = None,
    ahead: Path | None = None,
) -> HostProcess:
    """Start a child that serves the target of `spec` over `connection` and prints into `output`.

    It is forked where `preload` names modules and the system can; TargetError or SetupError if that fails. `home` is
    its working folder and its HOME, where it is not to have ours. `ahead` is a folder of packages that it imports
    instead of ours.
    """
    if preload and can_fork() and ahead is None:
        return await _nursery().fork(_wish(spec, folder, preload, home), connection, output)
    words = (spec, str(folder))
    return Cold(_python("memstory.running.hosting.child", connection, *words, output=output, home=home, ahead=ahead))


def _wish(spec: str, folder: Path, preload: Sequence[str], home: Path | None) -> Tree:
    """Return what a forked child has to know, which a cold one would inherit."""
    return {
        "spec": spec,
        "shared": str(folder),
        # Its own module too, unless it is a table: `FILE.toml#NAME`, or must not be imported anywhere but at home.
        "preload": [*preload, *([] if "#" in spec or home else [spec.partition(":")[0]])],
        "environment": _environment(home),
        "path": _path(),
        "folder": str(home or Path.cwd()),
    }


def _python(
    module: str,
    connection: socket.socket,
    *words: str,
    output: IO[bytes] | int,
    home: Path | None = None,
    ahead: Path | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  (our own modules)
        [sys.executable, "-m", module, str(connection.fileno()), *words],
        pass_fds=[connection.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        cwd=home,
        env=_environment(home, ahead),
    )


class Cold:
    """A child that started as a separate Python."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._told: str | None = None
        self.pid = process.pid

    def exit_phrase(self) -> str | None:
        """Return ` with exit code 3` or ` by signal 9 (Killed)`; None while it runs. It can be asked after `end`."""
        return self._told or end_of(self.pid)

    async def end(self) -> None:
        """SIGKILL the child's group, even if the child is gone, and return when that is done."""
        kill_group(self.pid)
        await wait_until(lambda: end_of(self.pid) is not None, None)
        self._told = end_of(self.pid)
        self._process.wait()


class Forked:
    """A child of the nursery, which tells over the leash how it ended, and kills it when the leash is let go."""

    def __init__(self, pid: int, leash: socket.socket, told: bytes) -> None:
        self.pid = pid
        self._leash = leash
        self._told = told.decode()

    def exit_phrase(self) -> str | None:
        """Return the same as that of `Cold`."""
        if not self._told:
            with contextlib.suppress(BlockingIOError, ConnectionResetError):
                self._told = self._leash.recv(4096).decode() or ", and so did the process that could tell how"
        return self._told or None

    async def end(self) -> None:
        """Do the same as that of `Cold`."""
        try:
            with contextlib.suppress(ConnectionError):
                self._leash.shutdown(socket.SHUT_WR)
                while more := await asyncio.get_running_loop().sock_recv(self._leash, 4096):
                    self._told += more.decode()
        finally:
            self._leash.close()


HostProcess: TypeAlias = Cold | Forked
"""A running child and all that it has started; it has its own session."""


class NurseryClient:
    """The harness's side of `nursery`, which ends when this process does, however that comes."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = _python("memstory.running.hosting.nursery", theirs, output=subprocess.DEVNULL)
        self._is_fit = True
        atexit.register(self.close)

    @property
    def is_fit(self) -> bool:
        """Whether it can be asked for children: it lives, and has started no thread."""
        return self._is_fit and self._process.poll() is None

    async def fork(self, wish: Tree, connection: socket.socket, output: IO[bytes]) -> Forked:
        """Return a new child; cancelled, it leaves none."""
        leash, theirs = socket.socketpair()
        leash.setblocking(False)  # noqa: FBT003  (it takes no keyword)
        try:
            with theirs, contextlib.suppress(ConnectionError):
                socket.send_fds(self._orders, [b"+"], [connection.fileno(), output.fileno(), theirs.fileno()])
            line, ending = await _exchange(leash, wish)
            return Forked(self._pid(line), leash, ending)
        except BaseException:
            leash.close()
            raise

    def _pid(self, line: bytes) -> int:
        """Return the number of the child that was made; raises why there is none."""
        if not line:
            self._is_fit = False  # Its sockets close a moment before the system says that it has ended.
            raise TargetError("the process that was to fork the target's has ended")
        answer = json.loads(line)
        if "refused" in answer:
            self._is_fit = False
            raise SetupError(_REFUSED.format(threads=", ".join(answer["refused"])))
        return int(answer["pid"])

    def close(self) -> None:
        """End it, and whatever it was about."""
        self._orders.close()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


async def _exchange(leash: socket.socket, wish: Tree) -> tuple[bytes, bytes]:
    """Return the line that answers `wish` and what came behind it; nothing if the other side is gone."""
    loop = asyncio.get_running_loop()
    told = b""
    with contextlib.suppress(ConnectionError):
        await loop.sock_sendall(leash, to_line(wish))
        while b"\n" not in told and (more := await loop.sock_recv(leash, 4096)):
            told += more
    line, is_whole, rest = told.partition(b"\n")
    return (line, rest) if is_whole else (b"", b"")


def _environment(home: Path | None = None, ahead: Path | None = None) -> dict[str, str]:
    own = {"HOME": str(home)} if home else {}
    elsewhere = {name for name in os.environ if home and name.startswith("XDG_")}
    kept = {name: value for name, value in os.environ.items() if name not in elsewhere}
    return {**kept, "PYTHONPATH": os.pathsep.join([*([str(ahead)] if ahead else []), *_path()]), **own}


def _path() -> list[str]:
    """Return where modules lie; the working folder by its name, for a child may have another."""
    return list(dict.fromkeys(str(Path(folder).absolute()) for folder in sys.path))


def _nursery() -> NurseryClient:
    """Return the nursery of this process; one that is unfit is replaced."""
    if not _running_nursery().is_fit:
        _running_nursery.cache_clear()
    return _running_nursery()


@cache
def _running_nursery() -> NurseryClient:
    return NurseryClient()


@cache
def can_fork() -> bool:
    """Return whether there are fork and pidfd: on Linux, and not in every sandbox of it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True
