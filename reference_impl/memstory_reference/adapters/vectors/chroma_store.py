"""The vector store whose rows are in Chroma itself: in a folder of this process, or on a server that many share.

A server is started by `chroma run`. Nothing of it is held in memory, for others write too, and it has no
authentication: let it listen on 127.0.0.1 only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import chromadb
import numpy as np
from chromadb.api.client import Client
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from numpy.typing import NDArray

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.vectors.checked_index import CheckedIndex
from memstory_reference.adapters.vectors.chroma_collections import (
    check_space,
    chroma_errors,
    collection_name,
    find_collection,
    make_collection,
    own_collections,
    sample_ids,
    unreachable_ids,
)
from memstory_reference.adapters.vectors.chroma_rows import ChromaRows
from memstory_reference.adapters.vectors.vector_rows import check_model
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.lane import SerialThread
from memstory_reference.storage.named_locks import NamedLocks

logger = logging.getLogger(__name__)


async def open_chroma_folder(folder: Path, data: Path, *, model: str, dimension: int | None = None) -> ChromaStore:
    """Open the store in `folder`, which this store alone owns until it is closed; all of it is in Chroma, in `data`.

    Raises:
        StoreConflictError: another store has the folder, or made it with another model or dimension.
        SetupError: the folder cannot be written.
    """
    lock = FolderLock(folder)
    lock.acquire()
    place = str(folder)
    lane = SerialThread(place, partial(chroma_errors, place, "Restore the folder from a copy, or begin a new one."))
    try:
        client = await lane.run(_folder_client, data)
    except BaseException:
        lock.release()
        raise

    def release() -> None:
        try:
            client.close()
        finally:
            lock.release()

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
        self._lane = lane
        self._release = release
        self._has_copies = has_copies
        self.dimension = dimension
        self._client = client
        self._place = place
        self._model = model
        self._batch = int(client.get_max_batch_size())
        self._rows: dict[str, CollectionRows] = {}

    def alone(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Hold off who else in this process wants to be alone with this owner."""
        return self._locks.hold(owner)

    async def index(self, collection: str, owner: str) -> CheckedIndex:
        """Open the index of `owner`."""
        name = collection_name(collection, owner)
        rows = self._rows.get(name) or CollectionRows(self, (collection, owner))
        if await self._lane.run(rows.open):
            self._rows[name] = rows  # of a name that only was asked for, nothing is kept
        return CheckedIndex(self._lane, rows, lambda: self.dimension)

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        return await self._lane.run(self._owners, collection)

    async def close(self) -> None:
        """Let go of the folder or the server; a second call does nothing."""
        await self._lane.close(self._release)

    async def admit(self) -> None:
        """Compare the store with this run by its first collection: all others were admitted by the same rule."""
        first = await self._lane.run(next, own_collections(self._client), None)
        if first is not None:
            self._check(first)

    def find(self, key: tuple[str, str]) -> ChromaRows | None:
        """Return the rows of an owner, or None if nothing was ever written; blocking."""
        found = find_collection(self._client, collection_name(*key))
        return None if found is None else self._check_rows(found)

    def create(self, key: tuple[str, str], dimension: int) -> ChromaRows:
        """Make the collection of an owner; blocking."""
        names = {"memstory:collection": key[0], "memstory:owner": key[1]}
        stamp: dict[str, str | int] = {**names, "memstory:model": self._model, "memstory:dimension": dimension}
        return self._check_rows(make_collection(self._client, collection_name(*key), stamp))

    def _check_rows(self, found: Collection) -> ChromaRows:
        self._check(found)
        return ChromaRows(found, self._batch, has_copies=self._has_copies)

    def _check(self, found: Collection) -> None:
        check_space(found, self._place)
        model, dimension = found.metadata["memstory:model"], int(found.metadata["memstory:dimension"])
        check_model(self._place, (model, dimension), (self._model, self.dimension))
        self.dimension = dimension

    def _owners(self, collection: str) -> list[str]:
        stamps = [own.metadata for own in own_collections(self._client)]
        return sorted({stamp["memstory:owner"] for stamp in stamps if stamp["memstory:collection"] == collection})


class CollectionRows:
    """One owner's rows in Chroma; their collection is made by the first write."""

    def __init__(self, store: ChromaStore, key: tuple[str, str]) -> None:
        self._store = store
        self._key = key
        self._found: ChromaRows | None = None

    def open(self) -> ChromaRows | None:
        """Find the rows and, the first time, check that a query reaches them."""
        if self._found is None:
            self._found = self._store.find(self._key)
            if self._found is not None:
                chosen = list(self._found.read(sample_ids(self._found.select({}))).values())
                if lost := unreachable_ids(self._found.collection, chosen):
                    share = (self._found.collection.name, len(lost), len(chosen))
                    logger.warning("%s: a query misses %d of %d rows: Chroma's index has lost them", *share)
        return self._found

    def put(self, records: Sequence[Record]) -> None:
        found = self.open()
        old = found.read([record.id for record in records]) if found else {}
        self._found = found or self._store.create(self._key, len(np.asarray(records[0].vector)))
        self._found.put(records, old)

    def drop(self, ids: Sequence[str]) -> list[str]:
        found = self.open()
        return found.drop(ids) if found else []

    def read(self, ids: Sequence[str]) -> list[Record]:
        found = self.open()
        return list(found.read(ids).values()) if found else []

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        found = self.open()
        return found.select(where) if found else []

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        found = self.open()
        near = found.near(vector, k, where) if found else {}
        best = sorted(near, key=lambda one: (-near[one], one))[:k]
        return [Match(record=replace(row, vector=None), similarity=near[row.id]) for row in self.read(best)]

    def count(self) -> int:
        found = self.open()
        return found.count() if found else 0


def _folder_client(folder: Path) -> Client:
    settings = Settings(anonymized_telemetry=False)
    return cast("Client", chromadb.PersistentClient(str(folder), settings=settings))


def _http_client(host: str, port: int, place: str) -> Client:
    try:
        return cast("Client", chromadb.HttpClient(host, port, settings=Settings(anonymized_telemetry=False)))
    except ValueError as problem:
        msg = (
            f"the Chroma server at {place} does not answer. Start it with "
            f"'chroma run --path FOLDER --host {host} --port {port}', or use a folder instead."
        )
        raise UnavailableError(msg) from problem


def _close_http(client: Client) -> None:
    """Close a client and its connections: Chroma's `close` leaves them open, and a second client within has its own."""
    parts: list[Any] = [client, client._admin_client]  # noqa: SLF001  (there is no public way to them)
    sessions = [part._server._session for part in parts]  # noqa: SLF001
    client.close()
    for session in sessions:
        session.close()
