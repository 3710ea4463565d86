"""A real `memstory-reference serve http` in a process, and a way to ask it."""

import os
import signal
import socket
import subprocess
import sys
from itertools import count

import httpx
import pytest

NUMBERS = count()


class Served:
    """The process, its address, and what its folder holds."""

    def __init__(self, folder, *options, system="layers", store=None):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        start = "import sys; from memstory_reference.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [
            sys.executable,
            "-c",
            start,
            "serve",
            "http",
            "--system",
            system,
            "--store",
            store or str(folder / system),
        ]
        embedder = "none" if system == "layers" else "words"
        self.process = subprocess.Popen(  # noqa: S603  (our own command)
            [*command, "--embedder", embedder, "--port", str(self.port), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self.user = "ann"
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=f"{self.url}/api/memory", timeout=20)

    def wait(self):
        line = self.process.stdout.readline()
        assert self.url in line, self.process.stderr.read()
        return self

    def ask(self, method, path, *, status=200, **values):
        values = {"user_id": self.user, **values}
        sent = {"params": values} if method == "GET" else {"json": values}
        answer = self.client.request(method, path, **sent)
        assert answer.status_code == status, answer.text
        return answer.json()

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=20)
        self.client.close()
        return self.process.returncode, out, err


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory):
    """One server for the tests of a module."""
    server = Served(tmp_path_factory.mktemp("shared")).wait()
    yield server
    server.end()


@pytest.fixture
def server(shared_server):
    """A server that asks for somebody of the test's own."""
    shared_server.user = f"user-{next(NUMBERS)}"
    return shared_server


@pytest.fixture
def serve_http(tmp_path):
    """Start servers over one folder; those that still run at the end are ended."""
    servers = []

    def begin(*options, system="layers", store=None):
        servers.append(Served(tmp_path, *options, system=system, store=store))
        return servers[-1].wait()

    yield begin
    for server in servers:
        server.end()
