"""Processes as a person would start them, on a bus of the test's own."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from memstory.contract.errors import SetupError
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats, nats_server
from memstory_reference.adapters.servers.nats_bus import open_nats_bus

COMMAND = (sys.executable, "-c", "from memstory_reference.cli import main; raise SystemExit(main())")


@dataclass
class Served:
    """A process of `memstory-reference serve`."""

    process: subprocess.Popen
    line: str

    def kill(self):
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """End it as a person would; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)


@dataclass
class Processes:
    """Starts commands in an empty folder, against one bus."""

    folder: object
    bus: str
    environ: dict = field(default_factory=dict)
    started: list = field(default_factory=list)

    def begin(self, *arguments, **environ):
        process = subprocess.Popen(  # noqa: S603  (our own command)
            [*COMMAND, "serve", *arguments],
            cwd=self.folder,
            env={**os.environ, "MEMSTORY_NATS": self.bus, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def ready(self, process):
        line = process.stdout.readline()
        assert "serving on" in line, process.stderr.read()
        return Served(process, line)

    def serve(self, *arguments, **environ):
        return self.ready(self.begin(*arguments, **environ))

    def run(self, *arguments, lines=()):
        return subprocess.run(  # noqa: S603  (our own command)
            [*COMMAND, *arguments],
            cwd=self.folder,
            env={**os.environ, "MEMSTORY_NATS": self.bus},
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def nats(tmp_path):
    try:
        nats_server()
    except SetupError as problem:
        pytest.skip(str(problem))
    with EmbeddedNats(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def processes(tmp_path, nats):
    running = Processes(tmp_path, nats.url)
    yield running
    for process in running.started:
        process.kill()
        process.communicate()


@pytest.fixture
async def bus(nats):
    opened = await open_nats_bus(nats.url, "test")
    yield opened
    await opened.close()
