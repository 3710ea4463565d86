"""Chroma's index beside the exact store, for owners whose rows are too many for a matrix.

SQLite has the truth: an index that is damaged, that misses rows without a word (chroma#7758) or that does not answer in
time, as on a full disk, is made again; the last at the next opening.
Importing this module imports chromadb, which takes a second.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import chromadb
import numpy as np
from chromadb.api.client import Client
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings
from numpy.typing import NDArray

from memstory_reference.adapters.vectors import chroma_files
from memstory_reference.adapters.vectors.chroma_collections import (
    chroma_errors,
    collection_name,
    find_collection,
    make_collection,
    sample_ids,
    unreachable_ids,
)
from memstory_reference.adapters.vectors.chroma_rows import ChromaRows
from memstory_reference.adapters.vectors.stored_rows import StoredRows
from memstory_reference.adapters.vectors.timely import StuckError, TimedThread
from memstory_reference.ports import Primitive, Record

logger = logging.getLogger(__name__)

CHURN = 1_000
"""Rows replaced or deleted after which Chroma's index is checked again: these writes put rows out of reach."""

BATCH = 1_000
_STALE = ".stale"
"""Added to the name of a folder whose index did not answer: the next process makes it again."""


class ChromaFollower:
    """A `Follower` with its own folder; blocking. A collection is made when its rows are first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stale = folder.with_name(folder.name + _STALE)
        self._timely = TimedThread(f"Chroma at {folder}")
        self._client: Client | None = None
        self._sound: dict[tuple[str, str], ChromaRows] = {}
        self._churn: dict[tuple[str, str], int] = {}

    def near(
        self, rows: StoredRows, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]
    ) -> Sequence[str]:
        """Return about the k nearest ids by Chroma's index, and those that tie with the last."""
        with self._translated():
            return list(self._timely.run(self._ready(rows).near, vector, k, where))

    def catch_up(self, rows: StoredRows) -> None:
        """Take in what changed."""
        with self._translated():
            self._drain(rows, self._found(rows))

    def close(self) -> None:
        """Close Chroma; what is stuck is left to the end of the process."""
        with suppress(StuckError):
            if self._client is not None:
                self._timely.run(self._client.close)
        self._client = None
        self._timely.close()

    def _ready(self, rows: StoredRows) -> ChromaRows:
        """Return the rows in Chroma, up to date and, the first time and after many changes, checked."""
        found = self._found(rows)
        self._drain(rows, found)
        if rows.key not in self._sound or self._churn.get(rows.key, 0) >= CHURN:
            chosen = rows.read(sample_ids(rows.select({})))
            lost = self._timely.run(unreachable_ids, found.collection, chosen)
            if lost or self._timely.run(found.count) != rows.count():
                share = (found.collection.name, len(lost), len(chosen))
                logger.warning("%s: a query misses %d of %d sampled rows; the index is rebuilt", *share)
                self._timely.run(self._opened().delete_collection, found.collection.name)
                found = self._found(rows)
                self._drain(rows, found)
            self._sound[rows.key], self._churn[rows.key] = found, 0
        return found

    def _found(self, rows: StoredRows) -> ChromaRows:
        client, (collection, owner) = self._opened(), rows.key
        name = collection_name(collection, owner)
        found, batch = self._timely.run(lambda: (find_collection(client, name), client.get_max_batch_size()))
        if found is None:
            rows.follow()  # before the collection: a process that is killed in between leaves all of it to do
            stamp = {"memstory:collection": collection, "memstory:owner": owner}
            found = self._timely.run(make_collection, client, name, stamp)
        return ChromaRows(found, int(batch), is_follower=True)

    def _drain(self, rows: StoredRows, found: ChromaRows) -> None:
        while pending := rows.pending(BATCH):
            records = rows.read(pending)
            replaced = self._timely.run(_take, found, pending, records)
            rows.done(pending)
            self._churn[rows.key] = self._churn.get(rows.key, 0) + replaced

    def _opened(self) -> Client:
        if self._client is None:
            if self._stale.exists():
                shutil.rmtree(self._stale)
            if not chroma_files.are_indexes_whole(self._folder):
                logger.warning("%s: the index files were damaged; they are made again from the rows", self._folder)
                shutil.rmtree(self._folder)
            self._client = self._timely.run(_persistent_client, self._folder)
        return self._client

    @contextmanager
    def _translated(self) -> Iterator[None]:
        place = str(self._folder)
        try:
            with chroma_errors(place, f"Delete {place}: it is made again from the rows beside it."):
                yield
        except StuckError:
            _forget_client(self._folder)
            if not self._stale.exists():
                # It is deleted when the folder is next opened: a thread may still write to it.
                self._folder.rename(self._stale)
            raise


def _take(rows: ChromaRows, ids: Sequence[str], records: Sequence[Record]) -> int:
    """Make the rows of `ids` what `records` say, or nothing; return how many there were."""
    old = rows.read(ids)
    rows.put(records, old)
    rows.drop([one for one in old if one not in {row.id for row in records}])
    return len(old)


def _persistent_client(folder: Path) -> Client:
    try:
        settings = Settings(anonymized_telemetry=False)
        return cast("Client", chromadb.PersistentClient(str(folder), settings=settings))
    except BaseException:
        # Chroma keeps the half-made system of a failed start, and would hand it to the next try.
        _forget_client(folder)
        raise


def _forget_client(folder: Path) -> None:
    SharedSystemClient._identifier_to_system.pop(str(folder), None)  # noqa: SLF001  (its public way drops all stores)
