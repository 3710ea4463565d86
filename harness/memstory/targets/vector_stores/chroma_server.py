"""Chroma as a server with several clients: what one client writes, another one searches."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from memstory.contract.clock import Clock
from memstory.contract.errors import SetupError
from memstory.contract.target import Capability, Environment, Target, Tree
from memstory.targets.embedders import Embedders
from memstory.targets.embedding_factory import EmbeddingFactory
from memstory.targets.services.child_server import ChildServer, Launch
from memstory.targets.vector_stores.chroma import CAPABILITIES as OF_CHROMA
from memstory.targets.vector_stores.chroma import ChromaTarget, digest, made, quiet
from memstory.targets.vector_stores.left_over import is_gone, owner_of

SERVER: Final = "server"
CLIENTS: Final = "clients"
# A second process would start a second server.
CAPABILITIES: frozenset[Capability] = (OF_CHROMA - {"other_process"}) | {f"option.{SERVER}", f"option.{CLIENTS}"}

_HOST: Final = "127.0.0.1"
_OWNER: Final = "memstory:owner"
_USUAL_CLIENTS, _MOST_CLIENTS = 2, 32
_START_SECONDS, _LOOK_SECONDS = 60.0, 0.05
_RUN: Final = (sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run")
# Chroma's server ignores the end of its input, which shows that its parent process is gone.
_GUARD: Final = """
exec 3<&0
"$@" 3<&- & server=$!
(read -r _; kill -TERM "$server") <&3 & reader=$!
wait "$server"; status=$?
kill "$reader" 2>/dev/null
exit "$status"
"""


class ChromaServers:
    """The server that the option names, else one that is started in a folder when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: ChildServer | None = None
        self._url = ""
        self._named: str | None = None
        self._starting = asyncio.Lock()

    async def url(self, env: Environment) -> str:
        """Return the address of a server; SetupError where our own does not start."""
        named = env.options.get(SERVER)
        if named is not None:
            self._named = str(named)
            return self._named
        async with self._starting:
            if self._own is None:
                await self._start()
            return self._url

    async def stop(self) -> None:
        """Stop what was started; on a server that was named, remove what nobody opens again."""
        if self._own is not None:
            await self._own.stop()
        if self._named is not None:
            await asyncio.to_thread(_remove_left_over, self._named)

    async def _start(self) -> None:
        port = _free_port()
        place = ["--path", str(self._folder / "chroma"), "--host", _HOST, "--port", str(port)]
        command = ["/bin/sh", "-c", _GUARD, "memstory-chroma", *_RUN, *place]
        server = ChildServer(Launch(command=command, cwd=self._folder))
        await server.start()
        try:
            await _answering(server, port)
        except BaseException:
            await server.stop()
            raise
        self._own, self._url = server, f"http://{_HOST}:{port}"


class ChromaServerTarget(ChromaTarget):
    """Clients of one server that take turns, so that nearly each step sees what another client has done."""

    _url: str
    _clients: list[Any]
    _turns: Iterator[int]
    _prefix: str
    _note: Mapping[str, Tree]

    def __init__(self, embedders: Embedders, servers: ChromaServers) -> None:
        super().__init__(embedders)
        self._servers = servers

    async def open(self, env: Environment, clock: Clock) -> None:
        self._url = await self._servers.url(env)
        await super().open(env, clock)

    def connect(self, env: Environment) -> None:
        count = _count(env.options.get(CLIENTS, _USUAL_CLIENTS))
        self._clients = [_client(self._url) for _ in range(count)]
        self._client, self._turns = self._clients[0], cycle(range(count))
        # A server is for many workspaces, each of which knows nothing of the others.
        self._prefix = f"memstory-{digest(env.workspace)}"
        self._note = {_OWNER: owner_of(env.workspace)}

    def disconnect(self) -> None:
        for client in self._clients:
            _close(client)

    def collection(self, user: str) -> Any:
        turn = next(self._turns)
        name = f"{self._prefix}-{digest(user)}"
        place = f"{turn}:{name}"
        if place not in self._collections:
            self._collections[place] = made(self._clients[turn], name, self._note)
        return self._collections[place]

    async def about(self) -> Mapping[str, str]:
        server = await self._thread.run(self._client.get_version)
        store = f"chromadb {version('chromadb')}, {len(self._clients)} client{'s' * (len(self._clients) > 1)}"
        return {"embedder": self._embedder.model, "store": store, "server": f"chroma run {server}"}


class ChromaServerFactory(EmbeddingFactory):
    """Several clients of one Chroma server, which is started, or named by `server=URL`; `clients=2` says how many."""

    name: ClassVar[str] = "chroma-server"
    spec: ClassVar[str | None] = "memstory.targets.vector_stores.chroma_server:ChromaServerFactory"
    able: ClassVar[frozenset[Capability]] = CAPABILITIES
    _servers: ChromaServers

    async def start(self, folder: Path) -> None:
        self._servers = ChromaServers(folder)

    def target(self) -> Target:
        return ChromaServerTarget(self._embedders, self._servers)

    async def stop(self) -> None:
        await self._servers.stop()
        await super().stop()


def _client(url: str) -> Any:
    import chromadb  # noqa: PLC0415  (takes a second: only where it was chosen)

    host, port, is_secure = _address(url)
    try:
        return chromadb.HttpClient(host, port, ssl=is_secure, settings=quiet())
    except ValueError as error:
        raise SetupError(
            f"no Chroma server answers at {url}: start one there with 'chroma run --path FOLDER --host {host} --port "
            f"{port}', or leave out the option '{SERVER}': then one is started"
        ) from error


def _close(client: Any) -> None:
    """Close a client and its connections: Chroma's `close` leaves them open, and a second client within has its own."""
    sessions = [part._server._session for part in (client, client._admin_client)]  # noqa: SLF001  (no public way)
    client.close()
    for session in sessions:
        session.close()


def _address(url: str) -> tuple[str, int, bool]:
    wrong = f"{SERVER}={url}: give the address of a Chroma server, such as http://127.0.0.1:8000"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise SetupError(wrong) from error
    is_secure = parts.scheme == "https"
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.username:
        raise SetupError(wrong)
    return parts.hostname, port or (443 if is_secure else 8000), is_secure


def _count(value: Tree) -> int:
    if type(value) is not int or not 1 <= value <= _MOST_CLIENTS:
        raise SetupError(f"{CLIENTS}={value}: give the number of clients, from 1 to {_MOST_CLIENTS}")
    return value


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


async def _answering(server: ChildServer, port: int) -> None:
    """Return when the server takes connections; SetupError if it ends or takes too long."""
    end = monotonic() + _START_SECONDS
    while True:
        try:
            _, writer = await asyncio.open_connection(_HOST, port)
        except OSError as error:
            words = server.last_words()
            if "has ended" in words or monotonic() > end:
                raise SetupError(f"Chroma's server does not start; {words or 'it says nothing'}") from error
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            writer.close()
            return


def _remove_left_over(url: str) -> None:
    try:
        client = _client(url)
    except SetupError:
        return  # whatever has ended has nothing left to remove
    for found in client.list_collections():
        if is_gone(str((found.metadata or {}).get(_OWNER, ""))):
            client.delete_collection(found.name)
    _close(client)
