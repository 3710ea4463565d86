"""The nursery of `process`: it has imported what targets need, and forks a child for each of them.

Run as `python -m memstory.running.hosting.nursery FD`. For each child three descriptors come over FD: its socket, the
file that takes what it prints, and its leash. Over the leash comes one line of JSON that says what to be, and one line
`{pid}` or `{refused}` and, later, how the child ended. The end of the leash's file is the order to kill the child
and what it has started; it comes, too, when the harness is killed. Nobody but the nursery kills or reaps a child, so
no number can come to name another process.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from memstory.child_process import end_of
from memstory.contract.target import Tree
from memstory.running.hosting.child import run
from memstory.running.hosting.protocol import to_line

IMPORT_SECONDS = 120
"""A nursery that is longer at its imports is ended by the system, as nothing else could end it then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ward:
    """A child that was not reaped yet; `end` is a descriptor that can be read once the child has ended."""

    pid: int
    end: int
    leash: socket.socket


class Nursery:
    """Forks, watches and kills. It starts no thread, for a fork would lose it."""

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._selector = selectors.DefaultSelector()
        self._selector.register(orders, selectors.EVENT_READ)

    def serve(self) -> tuple[int, Tree] | None:
        """Return when the harness has gone; and in each child, with its socket and what it is to be."""
        while True:
            # One at a time: it may unmake the next.
            key = self._selector.select()[0][0]
            ward: Ward | None = key.data
            if ward is not None and key.fileobj is ward.leash:
                self._end(ward)
            elif ward is not None:
                self._tell_end(ward)
            else:
                order, descriptors, _, _ = socket.recv_fds(self._orders, 1, 3, socket.MSG_CMSG_CLOEXEC)
                if not order:
                    for left in self._wards():
                        self._end(left)
                    return None
                connection, output, leash = descriptors
                wish = self._bear(output, socket.socket(fileno=leash))
                os.close(output)
                if wish is not None:
                    return connection, wish
                os.close(connection)

    def _bear(self, output: int, leash: socket.socket) -> Tree | None:
        """Fork; return None in the nursery, and in the child what it is to be."""
        with closing(leash.makefile("rb")) as written:
            line = written.readline()
        if not line:  # It was given up before it was said.
            leash.close()
            return None
        wish = json.loads(line)
        # What an import prints, or kills the nursery with, is reported as the first child's output.
        os.dup2(output, 1)
        os.dup2(output, 2)
        _become(wish)
        _import(wish["preload"])
        pid = os.fork()
        if pid == 0:
            os.setsid()
            self._forget(leash)
            return wish
        ward = Ward(pid=pid, end=os.pidfd_open(pid), leash=leash)
        self._selector.register(leash, selectors.EVENT_READ, ward)
        self._selector.register(ward.end, selectors.EVENT_READ, ward)
        # Asked after the fork: what takes its threads down before one, as OpenBLAS does, is safe.
        threads = _threads()
        with suppress(ConnectionError):
            leash.sendall(to_line({"refused": threads} if threads else {"pid": pid}))
        return None

    def _tell_end(self, ward: Ward) -> None:
        self._selector.unregister(ward.end)
        with suppress(ConnectionError):  # One that kills at this moment does not wait for the answer.
            ward.leash.sendall((end_of(ward.pid) or "").encode())

    def _end(self, ward: Ward) -> None:
        with suppress(ProcessLookupError):  # It has no process group yet, so it has started nothing either.
            os.killpg(ward.pid, signal.SIGKILL)
        os.kill(ward.pid, signal.SIGKILL)
        os.waitid(os.P_PID, ward.pid, os.WEXITED | os.WNOWAIT)
        with suppress(KeyError):  # Its end was told already.
            self._tell_end(ward)
        os.waitpid(ward.pid, 0)
        self._selector.unregister(ward.leash)
        os.close(ward.end)
        ward.leash.close()

    def _forget(self, leash: socket.socket) -> None:
        """Close in a child what is the nursery's: an open copy would hide that the other side was closed."""
        for ward in self._wards():
            os.close(ward.end)
            ward.leash.close()
        self._selector.close()
        self._orders.close()
        leash.close()

    def _wards(self) -> list[Ward]:
        return [key.data for key in self._selector.get_map().values() if key.data and key.fileobj is key.data.leash]


def _become(wish: Tree) -> None:
    """Take what a process that was started now would have got, and a fork will inherit."""
    os.environ.clear()
    os.environ.update(wish["environment"])
    sys.path[:] = wish["path"]
    importlib.invalidate_caches()
    os.chdir(wish["folder"])


def _import(modules: list[str]) -> None:
    signal.alarm(IMPORT_SECONDS)
    for name in modules:
        with suppress(ImportError):  # The child meets it again, and tells it as any other error.
            importlib.import_module(name)
    signal.alarm(0)
    gc.freeze()  # No child looks through them again, which would copy them.


def _threads() -> list[str]:
    """Return the names of all threads but the one that runs this, those of libraries too."""
    tasks = Path("/proc/self/task")
    return [(task / "comm").read_text().strip() for task in tasks.iterdir() if task.name != str(os.getpid())]


if __name__ == "__main__":
    job = Nursery(socket.socket(fileno=int(sys.argv[1]))).serve()
    if job is not None:
        connection, wish = job
        run(connection, wish["spec"], Path(wish["shared"]))
