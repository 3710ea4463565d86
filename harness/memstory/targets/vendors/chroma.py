"""Chroma as it comes, in the workspace or as a server; only the embedder is chosen, the same for all backends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from memstory.contract.clock import Clock
from memstory.contract.errors import SetupError
from memstory.contract.target import Environment, Target, Tree
from memstory.targets.adapter import is_gone, owner_of
from memstory.targets.child_server import HOST, ChildServer, Launch, free_port
from memstory.targets.embedders import Embedders, EmbeddingFactory
from memstory.targets.rows import EMBEDS, ROWS, Row, RowQuery, VectorRowsTarget, conditions_on

_OWN = "memstory:"
_SESSION, _KEY, _KIND, _CREATED = (f"{_OWN}{name}" for name in ("session", "key", "kind", "created_at"))
_OPERATORS: Final = {"gt": "$gt", "ge": "$gte", "lt": "$lt", "le": "$lte", "ne": "$ne", "in": "$in"}
_INCLUDED = ["documents", "metadatas"]


class ChromaTarget(VectorRowsTarget):
    """A persistent client in the workspace, a collection a user; what it does with what it is given is Chroma's own.

    A subclass says in `connect` and `disconnect` where its collections are, and in `collection` which one is next.
    """

    not_default: ClassVar = {
        "hnsw space cosine": "default l2; the score of a hit is a similarity",
        "embedding function none": "default all-MiniLM-L6-v2; all adapters embed alike",
        "anonymized_telemetry off": "default on",
    }
    capabilities = ROWS | {
        *(*EMBEDS, "search.where", "search.where.order", "search.where.ne", "search.where.in"),
        "search.where.any",
        *("restart", "crash", "other_process", "clock", "persistent"),
    }
    name = "chroma"
    has_fixed_length = False
    usual_count = None
    _client: Any

    def __init__(self, embedders: Embedders) -> None:
        super().__init__(embedders)
        self._collections: dict[str, Any] = {}

    def connect(self, env: Environment) -> None:
        import chromadb  # noqa: PLC0415  (takes a second: only where it was chosen)

        self._client = chromadb.PersistentClient(str(Path(env.workspace) / "chroma"), settings=_quiet_settings())

    def disconnect(self) -> None:
        # Older releases have none: their process ends.
        if (close := getattr(self._client, "close", None)) is not None:
            close()

    def store_name(self) -> str:
        return f"chromadb {version('chromadb')}"

    def collection(self, user: str) -> Any:
        """Return the collection of a user, which is made where it is missing."""
        # Only the handle is kept: to ask for it each time would cost half as much again as a query.
        if user not in self._collections:
            self._collections[user] = _collection(self._client, f"user-{_digest(user)}")
        return self._collections[user]

    def write(self, rows: Sequence[Row]) -> Sequence[str]:
        most = self._client.get_max_batch_size()
        for start in range(0, len(rows), most):
            # The rows of one `add` are one user's.
            self.collection(rows[start].user).upsert(**_columns(rows[start : start + most]))
        return ()

    def rewrite(self, row: Row) -> None:
        self.collection(row.user).update(**_columns([row]))

    def find(self, query: RowQuery) -> list[Row]:
        ids = {} if query.id is None else {"ids": [query.id]}
        found = self.collection(query.user).get(**ids, where=_where(query), include=_INCLUDED)
        columns = [found[name] for name in ("ids", "documents", "metadatas")]
        return [_row(query.user, *each) for each in zip(*columns, strict=True)]

    def rank(self, query: RowQuery, count: int | None) -> list[tuple[Row, float]]:
        limit = {} if count is None else {"n_results": count}
        found = self.collection(query.user).query(
            query_embeddings=[query.vector], where=_where(query), include=[*_INCLUDED, "distances"], **limit
        )
        columns = [found[name][0] for name in ("ids", "documents", "metadatas", "distances")]
        # The collection's space is cosine, so that 1 - distance is the similarity.
        return [(_row(query.user, *each), 1 - distance) for *each, distance in zip(*columns, strict=True)]

    def is_refusal(self, error: Exception) -> bool:
        return super().is_refusal(error) or is_refusal(error)

    def remove(self, rows: Sequence[Row]) -> None:
        self.collection(rows[0].user).delete(ids=[row.id for row in rows])


class ChromaFactory(EmbeddingFactory):
    """Raw Chroma, embedded, with the embedder that the reference uses too."""

    name: ClassVar[str] = "chroma"
    adapter = ChromaTarget


def is_refusal(error: Exception) -> bool:
    """Say whether Chroma raised it for what it was given: equal ids in one call, a name that metadata cannot have."""
    # By names, for a memory that has Chroma inside need not have imported it.
    kind = type(error)
    return kind.__module__ == "chromadb.errors" and kind.__name__ in ("DuplicateIDError", "InvalidArgumentError")


def _quiet_settings() -> Any:
    """Return settings with which Chroma reports nothing to its makers."""
    from chromadb.config import Settings  # noqa: PLC0415  (takes a second: only where it was chosen)

    return Settings(anonymized_telemetry=False)


def _digest(text: str) -> str:
    """Return a name that Chroma takes for any text."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _collection(client: Any, name: str, metadata: Mapping[str, Tree] | None = None) -> Any:
    """Return a collection, searched by cosine, that embeds nothing; it is made where it is missing."""
    space = {"hnsw": {"space": "cosine"}}
    return client.get_or_create_collection(
        name, configuration=space, metadata=dict(metadata) if metadata else None, embedding_function=None
    )


def _columns(rows: Sequence[Row]) -> dict[str, Tree]:
    return {
        "ids": [row.id for row in rows],
        "embeddings": [row.vector for row in rows],
        "documents": [row.text for row in rows],
        "metadatas": [_metadata(row) for row in rows],
    }


def _metadata(row: Row) -> dict[str, Tree]:
    # Chroma takes no None.
    own = {_CREATED: row.created_at, _SESSION: row.session, _KEY: row.key, _KIND: row.kind}
    return {**row.metadata, **{name: value for name, value in own.items() if value is not None}}


def _where(query: RowQuery) -> Any:
    """Return conditions as Chroma takes them: several need an operator, and none is None, not an empty object."""
    equal = {_KEY: query.key, _SESSION: query.session, _KIND: {"$in": list(query.kinds)} if query.kinds else None}
    given = {name: value for name, value in equal.items() if value is not None}
    conditions: list[dict[str, Tree]] = [{name: value} for name, value in given.items()]
    conditions += _conditions(query.where)
    parts = [_join("$and", _conditions(one)) for one in query.where_any]
    return _join("$and", [*conditions, *([_join("$or", parts)] if parts else [])])


def _conditions(where: Mapping[str, Tree]) -> list[Any]:
    return conditions_on(
        where, lambda name, value: {name: value}, lambda name, operator, bound: {name: {_OPERATORS[operator]: bound}}
    )


def _join(how: str, conditions: Sequence[Any]) -> Any:
    if len(conditions) > 1:
        return {how: [*conditions]}
    return conditions[0] if conditions else None


def _row(user: str, id_: str, text: str, metadata: Mapping[str, Tree] | None) -> Row:
    values = metadata or {}
    return Row(
        id=id_,
        user=user,
        text=text,
        session=values.get(_SESSION),
        kind=values.get(_KIND),
        key=values.get(_KEY),
        created_at=values.get(_CREATED),
        metadata={name: value for name, value in values.items() if not name.startswith(_OWN)},
    )


SERVER: Final = "server"
CLIENTS: Final = "clients"

_OWNER: Final = "memstory:owner"
_USUAL_CLIENTS, _MOST_CLIENTS = 2, 32
_START_SECONDS: Final = 60.0
_RUN: Final = (sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run")


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
            await self._own.close()
        if self._named is not None:
            await asyncio.to_thread(_remove_orphans, self._named)

    async def _start(self) -> None:
        port = free_port()
        place = ["--path", str(self._folder / "chroma"), "--host", HOST, "--port", str(port)]
        server = ChildServer(Launch(command=[*_RUN, *place], cwd=self._folder, by_pipes=False))
        if not await server.start_at(port, _START_SECONDS):
            raise SetupError(f"Chroma's server does not start; {server.last_words() or 'it says nothing'}")
        self._own, self._url = server, f"http://{HOST}:{port}"


class ChromaServerTarget(ChromaTarget):
    """Clients of one server that take turns, so that nearly each step sees what another client has done."""

    # A second process would start a second server.
    capabilities = (ChromaTarget.capabilities - {"other_process"}) | {f"option.{SERVER}", f"option.{CLIENTS}"}
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
        self._prefix = f"memstory-{_digest(env.workspace)}"
        self._note = {_OWNER: owner_of(env.workspace)}

    def disconnect(self) -> None:
        for client in self._clients:
            _close(client)

    def collection(self, user: str) -> Any:
        turn = next(self._turns)
        name = f"{self._prefix}-{_digest(user)}"
        place = f"{turn}:{name}"
        if place not in self._collections:
            self._collections[place] = _collection(self._clients[turn], name, self._note)
        return self._collections[place]

    def store_name(self) -> str:
        return f"{super().store_name()}, {len(self._clients)} client{'s' * (len(self._clients) > 1)}"

    async def about(self) -> Mapping[str, str]:
        server = await self._thread.run(self._client.get_version)
        return {**await super().about(), "server": f"chroma run {server}"}


class ChromaServerFactory(EmbeddingFactory):
    """Several clients of one Chroma server, which is started, or named by `server=URL`; `clients=2` says how many."""

    name: ClassVar[str] = "chroma-server"
    adapter = ChromaServerTarget
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
        return chromadb.HttpClient(host, port, ssl=is_secure, settings=_quiet_settings())
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


def _remove_orphans(url: str) -> None:
    try:
        client = _client(url)
    except SetupError:
        return  # whatever has ended has nothing left to remove
    for found in client.list_collections():
        if is_gone(str((found.metadata or {}).get(_OWNER, ""))):
            client.delete_collection(found.name)
    _close(client)
