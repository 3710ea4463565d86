"""The vector store on Chroma, embedded in this process or on a server; what Chroma gets wrong is put right below it.

Importing this module imports chromadb, which takes a second: import it only where Chroma was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import chromadb
from chromadb.api.client import Client
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.vectors import chroma_files, chroma_health
from memstory_reference.adapters.vectors.chroma_catalog import Catalog, name_of
from memstory_reference.adapters.vectors.chroma_index import ChromaIndex, Mirrors
from memstory_reference.adapters.vectors.chroma_lane import Lane
from memstory_reference.errors import UnavailableError

EXACT_ROWS = 5_000
"""Up to so many rows an owner is searched exactly in memory: 0.1 ms at 384 numbers, and nothing is missed."""

MIRRORED_ROWS = 100_000
"""Rows of all owners held in memory: 150 MB of vectors at 384 numbers."""


async def open_chroma(
    folder: Path, *, model: str, dimension: int | None = None, exact_rows: int = EXACT_ROWS
) -> ChromaStore:
    """Open the store in `folder`, which this store alone owns until it is closed.

    StoreConflictError if another store has the folder or made it with another model, dimension or space;
    SetupProblem if the folder cannot be written.
    """
    closing = ExitStack()
    lock = FolderLock(folder)
    lock.acquire()
    closing.callback(lock.release)

    def opened() -> Catalog:
        aside = chroma_files.set_aside_damaged(folder)
        client = _persistent_client(folder)
        closing.callback(client.close)
        catalog = Catalog(client, place=str(folder), model=model, dimension=dimension, is_owned=True)
        catalog.admit()
        if aside:
            for rows in list(catalog.everyone()):
                chroma_health.mended(catalog, rows)
            chroma_files.remove(aside)
        return catalog

    mirrors = Mirrors(rows_each=exact_rows, rows_in_all=MIRRORED_ROWS)
    return await _store(Lane(str(folder)), opened, closing, mirrors)


async def open_chroma_server(host: str, port: int, *, model: str, dimension: int | None = None) -> ChromaStore:
    """Open the store of a server started by `chroma run`, which several processes may share.

    Nothing is held in memory, for others write too. Chroma's server has no authentication of its own: let it listen
    on 127.0.0.1 only. UnavailableError if it does not answer.
    """
    closing = ExitStack()
    place = f"http://{host}:{port}"

    def opened() -> Catalog:
        client = _http_client(host, port, place)
        closing.callback(_close_http, client)
        catalog = Catalog(client, place=place, model=model, dimension=dimension, is_owned=False)
        catalog.admit()
        return catalog

    return await _store(Lane(place), opened, closing, Mirrors(rows_each=0, rows_in_all=0))


async def _store(lane: Lane, opened: Callable[[], Catalog], closing: ExitStack, mirrors: Mirrors) -> ChromaStore:
    try:
        catalog = await lane.run(opened)
    except BaseException:  # cancelled or failed: whatever was opened is closed again, behind it in the lane
        await lane.close(closing.close)
        raise
    return ChromaStore(lane=lane, catalog=catalog, mirrors=mirrors, closing=closing)


class ChromaStore:
    """A `VectorStore`; made by `open_chroma` or `open_chroma_server`."""

    def __init__(self, *, lane: Lane, catalog: Catalog, mirrors: Mirrors, closing: ExitStack) -> None:
        self._lane = lane
        self._catalog = catalog
        self._mirrors = mirrors
        self._closing = closing
        self._indexes: dict[str, ChromaIndex] = {}

    @property
    def dimension(self) -> int | None:
        """The numbers of a vector; None until the first row of an empty store."""
        return self._catalog.dimension

    async def index(self, collection: str, owner: str) -> ChromaIndex:
        """Open the index of `owner`; its collection is made by the first write."""
        name = name_of(collection, owner)
        fresh = ChromaIndex(
            lane=self._lane, catalog=self._catalog, mirrors=self._mirrors, collection=collection, owner=owner
        )
        index = self._indexes.setdefault(name, fresh)
        await self._lane.run(index.open)
        return index

    async def owners(self, collection: str) -> Sequence[str]:
        """Return the owners that ever wrote."""
        return await self._lane.run(lambda: self._catalog.owners(collection))

    async def close(self) -> None:
        """Finish what is being written and let go of the folder; a second call does nothing."""
        await self._lane.close(self._closing.close)


def _settings() -> Settings:
    return Settings(anonymized_telemetry=False)


def _persistent_client(folder: Path) -> Client:
    try:
        return cast("Client", chromadb.PersistentClient(str(folder), settings=_settings()))
    except BaseException:
        # Chroma keeps the half-made system of a failed start, and would hand it to the next try.
        SharedSystemClient._identifier_to_system.pop(str(folder), None)  # noqa: SLF001  (its public way drops all stores)
        raise


def _http_client(host: str, port: int, place: str) -> Client:
    try:
        return cast("Client", chromadb.HttpClient(host, port, settings=_settings()))
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
