"""The vector store whose rows are in Chroma itself: in a folder of this process, or on a server that many share.

A server is started by `chroma run`. Nothing of it is held in memory, for others write too, and it has no
authentication: let it listen on 127.0.0.1 only.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import chromadb
import httpx
import numpy as np
from chromadb.api import ClientAPI
from chromadb.api.client import Client
from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration
from chromadb.api.models.Collection import Collection
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings
from chromadb.errors import ChromaError, NotFoundError
from numpy.typing import NDArray

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.adapters.vectors.vector_rows import CheckedIndex, check_model, checked_collection, checked_name
from memstory_reference.errors import StoreConflictError
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.sql_database import NamedLocks, SerialThread
from memstory_reference.storage.vector_matrix import DIGITS

logger = logging.getLogger(__name__)

SPACE: Literal["cosine"] = "cosine"
HNSW = CreateHNSWConfiguration(space=SPACE, ef_construction=100, ef_search=300, max_neighbors=24)
"""More neighbours and a wider search than Chroma's own 16, 100 and 100: slower, and nearer to the exact order."""

SYNC_ROWS = 1_000
"""Writes after which Chroma saves its index. A log that is never cut makes each write slower."""

SAMPLE = 64
"""Rows that a health check asks for."""

ROOM, NEAR = 10, 1e-4
"""A row within this distance of the query is its twin, and may be found in its place."""

PAGE = 200
NO_ROOM = ("disk is full", "readonly database", "disk I/O error", "unable to open database", "File exists")
"""What the messages of Chroma's core say when the folder, not the request, is at fault."""

VECTOR_KEY = "memstory:vector"
"""On a server each row carries its vector in its metadata too. Chroma trims its log once the index files are written,
and a process killed while it writes them loses the vectors; the copy survives."""

TIE_ROOM, TIE_LIMIT = 16, 1_000
"""Rows asked for beyond k, at first and at most, so that rows which tie at the cut are chosen by id."""


async def open_chroma_folder(folder: Path, data: Path, *, model: str, dimension: int | None = None) -> ChromaStore:
    """Open the store in `folder`, which this store alone owns until it is closed; all of it is in Chroma, in `data`.

    Raises:
        StoreConflictError: another store has the folder, or made it with another model or dimension.
        SetupError: the folder cannot be written.
    """
    place = str(folder)
    lane = SerialThread(place, partial(chroma_errors, place, "Restore the folder from a copy, or begin a new one."))
    with FolderLock(folder).opening() as let_go:
        client = await lane.run(_folder_client, data)

    def release() -> None:
        try:
            client.close()
        finally:
            let_go()

    return await _admit(ChromaStore(client, lane, release, place=place, model=model, dimension=dimension))


async def open_chroma_server(host: str, port: int, *, model: str, dimension: int | None = None) -> ChromaStore:
    """Open the store; UnavailableError if the server does not answer."""
    place = f"http://{host}:{port}"
    lane = SerialThread(place, partial(chroma_errors, place, "Look at the server's log."))
    client = await lane.run(_http_client, host, port, place)
    release = partial(_close_http, client)
    # A copy of each vector: the server may be killed by whoever started it.
    store = ChromaStore(client, lane, release, place=place, model=model, dimension=dimension, has_copies=True)
    return await _admit(store)


async def _admit(store: ChromaStore) -> ChromaStore:
    try:
        await store.admit()
    except BaseException:
        await store.close()
        raise
    return store


class ChromaStore:
    """A `VectorStore`; made by `open_chroma_folder` and `open_chroma_server`."""

    is_shared = False

    def __init__(
        self,
        client: Client,
        lane: SerialThread,
        release: Callable[[], None],
        *,
        place: str,
        model: str,
        dimension: int | None,
        has_copies: bool = False,
    ) -> None:
        self._locks = NamedLocks()
        self.lane = lane
        self._release = release
        self.has_copies = has_copies
        self.dimension = dimension
        self._client = client
        self._place = place
        self._model = model
        self.batch = int(client.get_max_batch_size())
        self._rows: dict[str, ChromaRows] = {}

    def alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Hold off who else in this process wants to be alone with this owner."""
        return self._locks.hold(owner)

    async def index(self, collection: str, owner: str) -> CheckedIndex:
        """Open the index of `owner`."""
        name = collection_name(collection, owner)
        rows = self._rows.get(name) or ChromaRows(self, (collection, owner))
        if await self.lane.run(rows.open):
            self._rows[name] = rows  # of a name that only was asked for, nothing is kept
        return CheckedIndex(lambda: nullcontext(rows))

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        return await self.lane.run(self._owners, collection)

    async def close(self) -> None:
        """Let go of the folder or the server; a second call does nothing."""
        await self.lane.close(self._release)

    async def admit(self) -> None:
        """Compare the store with this run by its first collection: all others were admitted by the same rule."""
        first = await self.lane.run(next, own_collections(self._client), None)
        if first is not None:
            self._check(first)

    def find(self, key: tuple[str, str]) -> Collection | None:
        """Return the collection of an owner, or None if nothing was ever written; blocking."""
        found = find_collection(self._client, collection_name(*key))
        if found is not None:
            self._check(found)
        return found

    def create(self, key: tuple[str, str], dimension: int) -> Collection:
        """Make the collection of an owner; blocking."""
        names = {"memstory:collection": key[0], "memstory:owner": key[1]}
        stamp: dict[str, str | int] = {**names, "memstory:model": self._model, "memstory:dimension": dimension}
        made = make_collection(self._client, collection_name(*key), stamp)
        self._check(made)
        return made

    def _check(self, found: Collection) -> None:
        check_space(found, self._place)
        model, dimension = found.metadata["memstory:model"], int(found.metadata["memstory:dimension"])
        check_model(self._place, (model, dimension), (self._model, self.dimension))
        self.dimension = dimension

    def _owners(self, collection: str) -> list[str]:
        stamps = [own.metadata for own in own_collections(self._client)]
        return sorted({stamp["memstory:owner"] for stamp in stamps if stamp["memstory:collection"] == collection})


class ChromaRows:
    """One owner's rows in Chroma, blocking; their collection is made by the first write."""

    def __init__(self, store: ChromaStore, key: tuple[str, str]) -> None:
        self.lane = store.lane
        self._store = store
        self._key = key
        self._found: Collection | None = None

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has; None before the first row."""
        return self._store.dimension

    def open(self) -> Collection | None:
        """Find the collection and, the first time, check that a query reaches its rows."""
        if self._found is None:
            self._found = self._store.find(self._key)
            if self._found is not None:
                sample = self.read(sample_ids(self.select({})))
                if lost := unreachable_ids(self._found, sample):
                    share = (self._found.name, len(lost), len(sample))
                    logger.warning("%s: a query misses %d of %d rows: Chroma's index has lost them", *share)
        return self._found

    def put(self, records: Sequence[Record]) -> None:
        """Write rows that have vectors; of those that exist the other metadata is removed."""
        old = {row.id: row for row in self.read([record.id for record in records])}
        found = self.open() or self._store.create(self._key, len(np.asarray(records[0].vector)))
        self._found = found
        for part in self._parts(records):
            found.upsert(
                ids=[record.id for record in part],
                documents=[record.text for record in part],
                embeddings=np.array([record.vector for record in part], dtype=np.float32),
                metadatas=[self._metadata(record, old.get(record.id)) for record in part],
            )

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows; return the ids that existed."""
        if (found := self.open()) is None:
            return []
        known = {one for part in self._parts(ids) for one in found.get(ids=list(part), include=[])["ids"]}
        gone = [one for one in ids if one in known]
        for part in self._parts(gone):
            found.delete(ids=list(part))
        return gone

    def read(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, in the order of `ids`, with their vectors."""
        if (found := self.open()) is None:
            return []
        has_copies = self._store.has_copies
        rows: dict[str, Record] = {}
        for part in self._parts(ids):
            asked: list[Any] = ["documents", "metadatas", *([] if has_copies else ["embeddings"])]
            answer = found.get(ids=list(part), include=asked)
            # Copies are in the metadata.
            embeddings: Any = [None] * len(answer["ids"]) if has_copies else answer["embeddings"]
            columns = (answer["ids"], answer["documents"] or [], answer["metadatas"] or [], embeddings)
            rows |= {one: _record(one, *rest) for one, *rest in zip(*columns, strict=True)}
        return [rows[one] for one in ids if one in rows]

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids that match, sorted."""
        found = self.open()
        return sorted(found.get(where=_where(where), include=[])["ids"]) if found else []

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        near = self._near(vector, k, where)
        best = sorted(near, key=lambda one: (-near[one], one))[:k]
        return [Match(record=replace(row, vector=None), similarity=near[row.id]) for row in self.read(best)]

    def count(self) -> int:
        """Count all rows."""
        found = self.open()
        return int(found.count()) if found else 0

    def _near(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> dict[str, float]:
        """Return the cosines of about the k nearest rows by Chroma's index, and of those that tie with the last."""
        size, collection = self.count(), self.open()
        if k <= 0 or size == 0 or collection is None:
            return {}
        wanted = min(k + TIE_ROOM, size)
        while True:
            found = _query(collection, vector, wanted, where)
            is_all = len(found) < wanted or wanted == size
            if is_all or wanted >= k + TIE_LIMIT or found[-1][1] < found[k - 1][1]:
                return dict(found)
            wanted = min(2 * wanted, size, k + TIE_LIMIT)

    def _metadata(self, record: Record, old: Record | None) -> dict[str, Primitive | None]:
        """Return what makes Chroma's merge a replacement: a None deletes a key that the row had."""
        stale = dict.fromkeys(old.metadata if old else ())
        vector = np.asarray(record.vector, dtype="<f4").tobytes() if self._store.has_copies else b""
        return {**stale, **record.metadata, VECTOR_KEY: base64.b64encode(vector).decode("ascii")}

    def _parts(self, rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
        """Return rows or ids, as many at once as the client takes."""
        return (rows[start : start + self._store.batch] for start in range(0, len(rows), self._store.batch))


def _query(
    collection: Collection, vector: NDArray[np.float32], wanted: int, where: Mapping[str, Primitive]
) -> list[tuple[str, float]]:
    """Return ids and cosines of one query, nearest first: the rows themselves are read once the cut is made."""
    answer = collection.query(
        query_embeddings=vector[np.newaxis], n_results=wanted, where=_where(where), include=["distances"]
    )
    distances = (answer["distances"] or [[]])[0]
    return [
        (one, round(max(-1.0, 1.0 - distance), DIGITS))
        for one, distance in zip(answer["ids"][0], distances, strict=True)
    ]


def _record(row_id: str, text: str | None, metadata: Mapping[str, Any] | None, stored: Any) -> Record:
    values = dict(metadata or {})
    coded = values.pop(VECTOR_KEY, None)
    vector = None if stored is None else np.asarray(stored, dtype=np.float32)
    if coded:
        vector = np.frombuffer(base64.b64decode(str(coded)), dtype="<f4").astype(np.float32)
    return Record(id=row_id, text=text or "", metadata=values, vector=vector)


def _where(where: Mapping[str, Primitive]) -> dict[str, Any] | None:
    """Return Chroma's form of a filter: it wants None for no key, and `$and` for more than one."""
    plain: list[dict[str, Any]] = [{key: value} for key, value in where.items()]
    if len(plain) > 1:
        return {"$and": plain}
    return plain[0] if plain else None


def _folder_client(folder: Path) -> Client:
    settings = Settings(anonymized_telemetry=False)
    try:
        return cast("Client", chromadb.PersistentClient(str(folder), settings=settings))
    except BaseException:
        # Chroma keeps what it could not start, and hands it to who opens the folder next.
        SharedSystemClient._identifier_to_system.pop(str(folder), None)  # noqa: SLF001
        raise


def _http_client(host: str, port: int, place: str) -> Client:
    try:
        return cast("Client", chromadb.HttpClient(host, port, settings=Settings(anonymized_telemetry=False)))
    except ValueError as problem:
        raise UnavailableError(
            f"the Chroma server at {place} does not answer. Start it with "
            f"'chroma run --path FOLDER --host {host} --port {port}', or use a folder instead."
        ) from problem


def _close_http(client: Client) -> None:
    """Close a client and its connections: Chroma's `close` leaves them open, and a second client within has its own."""
    parts: list[Any] = [client, client._admin_client]  # noqa: SLF001  (there is no public way to them)
    sessions = [part._server._session for part in parts]  # noqa: SLF001
    client.close()
    for session in sessions:
        session.close()


def collection_name(collection: str, owner: str) -> str:
    """Return a name that Chroma allows; the owner goes in as a hash, for an owner may be any text.

    >>> collection_name("local2.memory", "ana")
    'local2.memory-a07ce676b7999dee5c556523af5f9dca'
    """
    digest = hashlib.blake2b(checked_name("owner", owner).encode(), digest_size=16).hexdigest()
    return f"{checked_collection(collection)}-{digest}"


def find_collection(client: ClientAPI, name: str) -> Collection | None:
    """Return a collection, or None if there is none of this name."""
    try:
        return client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None


def make_collection(client: ClientAPI, name: str, stamp: Mapping[str, str | int]) -> Collection:
    """Make a collection, or find the one that another client just made."""
    # Other code may pass a space for a collection that exists, and Chroma ignores it: look afterwards (LF-11).
    hnsw: CreateHNSWConfiguration = {**HNSW, "sync_threshold": SYNC_ROWS}
    return client.get_or_create_collection(
        name, metadata=dict(stamp), configuration=CreateCollectionConfiguration(hnsw=hnsw), embedding_function=None
    )


def own_collections(client: ClientAPI) -> Iterator[Collection]:
    """Return the collections that this adapter made."""
    offset = 0
    while page := client.list_collections(limit=PAGE, offset=offset):
        yield from (one for one in page if "memstory:owner" in (one.metadata or {}))
        offset += PAGE


def check_space(found: Collection, place: str) -> None:
    """Raise StoreConflictError if a collection under our name was made by something else."""
    space = (found.configuration_json.get("hnsw") or {}).get("space")
    if space != SPACE or "memstory:owner" not in (found.metadata or {}):
        raise StoreConflictError(
            f"{place}: the collection {found.name!r} was made by something else (space {space!r}, expected "
            f"{SPACE!r}). Choose another folder, or delete that collection."
        )


def sample_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids that a health check asks for."""
    return sorted(random.Random(len(ids)).sample(ids, min(SAMPLE, len(ids))))  # noqa: S311  (no secret: a sample)


def unreachable_ids(collection: Collection, records: Sequence[Record]) -> list[str]:
    """Return the ids of the rows that a query with their own vector does not find (chroma#7758)."""
    size = min(ROOM, collection.count())
    if not records or not size:
        return [row.id for row in records]
    vectors = np.array([row.vector for row in records], dtype=np.float32)
    answer = collection.query(query_embeddings=vectors, n_results=size, include=["distances"])
    found = zip(records, answer["ids"], answer["distances"] or [], strict=True)
    return [row.id for row, hits, far in found if row.id not in hits and (len(far) < size or far[-1] > NEAR)]


@contextmanager
def chroma_errors(place: str, advice: str) -> Iterator[None]:
    """Turn errors of Chroma and of its transport into the few that callers know."""
    try:
        yield
    except httpx.HTTPError as problem:
        msg = f"the Chroma server at {place} does not answer ({problem}). Start it with 'chroma run', or use a folder."
        raise UnavailableError(msg) from problem
    except ChromaError as problem:
        if any(sign in str(problem) for sign in NO_ROOM):
            msg = f"{place} cannot be used as a store: {problem}. Give a folder with room that this user may write to."
            raise SetupError(msg) from problem
        raise UnavailableError(f"Chroma failed at {place}: {problem}. {advice}") from problem
