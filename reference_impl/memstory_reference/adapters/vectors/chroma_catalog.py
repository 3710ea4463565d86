"""Which Chroma collection is whose: its name, the stamp of what made it, and the swap for a rebuilt one; blocking."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Literal

from chromadb.api import ClientAPI
from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration
from chromadb.api.models.Collection import Collection
from chromadb.errors import NotFoundError

from memstory_reference.adapters.vectors.chroma_rows import ChromaRows
from memstory_reference.adapters.vectors.vector_rows import checked_name
from memstory_reference.errors import InputError, StoreConflictError

SPACE: Literal["cosine"] = "cosine"
HNSW = CreateHNSWConfiguration(space=SPACE, ef_construction=100, ef_search=300, max_neighbors=24)
"""At 8,000 unrelated rows of 384 numbers recall@10 is .95 in 3 ms; Chroma's own 16, 100 and 100 give .59 in 1.6 ms."""

SYNC_ROWS = 1_000
"""Writes after which Chroma saves its index. A log that is never cut costs each write 12 ms per 1,000 rows."""

REBUILT = "-rebuilt"
PAGE = 200
COLLECTION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){1,60}")


def name_of(collection: str, owner: str) -> str:
    """Return a name that Chroma allows; the owner goes in as a hash, for an owner may be any text.

    >>> name_of("local2.memory", "ana")
    'local2.memory-a07ce676b7999dee5c556523af5f9dca'
    """
    if not isinstance(collection, str) or not COLLECTION_NAME.fullmatch(collection):
        msg = f"collection {collection!r}: expected 2 to 61 letters, digits, '-', '_', single '.'; the first no sign"
        raise InputError(msg)
    digest = hashlib.blake2b(checked_name("owner", owner).encode(), digest_size=16).hexdigest()
    return f"{collection}-{digest}"


class Catalog:
    """The collections of one store; all were made with the same model and dimension."""

    def __init__(self, client: ClientAPI, *, place: str, model: str, dimension: int | None, is_owned: bool) -> None:
        self._client = client
        self._place = place
        self._model = model
        self._batch = int(client.get_max_batch_size())
        self.dimension = dimension
        self.is_owned = is_owned
        self.sync_rows = SYNC_ROWS

    def admit(self) -> None:
        """Compare the store with this run by its first collection: all others were admitted by the same rule."""
        for collection in self._own():
            self._check(collection)
            return

    def find(self, collection: str, owner: str) -> ChromaRows | None:
        """Return the rows of an owner, or None if nothing was ever written."""
        name = name_of(collection, owner)
        found = self._get(name) or self._finish_swap(name)
        if found is None:
            return None
        self._check(found)
        return ChromaRows(found, self._batch)

    def create(self, collection: str, owner: str, dimension: int) -> ChromaRows:
        """Make the collection of an owner, or find the one that another client just made."""
        self.dimension = dimension
        stamp = {
            "memstory:collection": collection,
            "memstory:owner": owner,
            "memstory:model": self._model,
            "memstory:dimension": dimension,
        }
        made = self._make(name_of(collection, owner), stamp)
        self._check(made)
        return ChromaRows(made, self._batch)

    def everyone(self) -> Iterator[ChromaRows]:
        """Return the rows of all collections that this adapter made."""
        return (ChromaRows(collection, self._batch) for collection in self._own())

    def owners(self, collection: str) -> list[str]:
        """Return the owners that ever wrote to a collection."""
        stamps = [own.metadata for own in self._own()]
        return sorted({stamp["memstory:owner"] for stamp in stamps if stamp["memstory:collection"] == collection})

    def rebuild(self, rows: ChromaRows) -> ChromaRows:
        """Copy all rows into a fresh collection and put it in place of the old one.

        A kill at any moment loses nothing: the copy bears another name until it is complete, and `find` ends a swap
        that was cut off after the old collection went.
        """
        name = rows.collection.name
        self._discard(name + REBUILT)
        stamp = {key: value for key, value in rows.collection.metadata.items() if key != "memstory:complete"}
        fresh = ChromaRows(self._make(name + REBUILT, stamp), self._batch)
        ids = rows.select({})
        for start in range(0, len(ids), self._batch):
            fresh.put(list(rows.read(ids[start : start + self._batch]).values()), {})
        fresh.collection.modify(metadata={**stamp, "memstory:complete": True})
        self._client.delete_collection(name)
        fresh.collection.modify(name=name)
        return fresh

    def _finish_swap(self, name: str) -> Collection | None:
        rebuilt = self._get(name + REBUILT)
        if rebuilt is None or not (rebuilt.metadata or {}).get("memstory:complete"):
            return None
        rebuilt.modify(name=name)
        return rebuilt

    def _check(self, found: Collection) -> None:
        stamp = found.metadata or {}
        space = (found.configuration_json.get("hnsw") or {}).get("space")
        if space != SPACE or "memstory:model" not in stamp:
            msg = (
                f"{self._place}: the collection {found.name!r} was made by something else (space {space!r}, expected "
                f"{SPACE!r}). Choose another folder, or delete that collection."
            )
            raise StoreConflictError(msg)
        model, dimension = stamp["memstory:model"], int(stamp["memstory:dimension"])
        if model != self._model or self.dimension not in (None, dimension):
            msg = (
                f"{self._place} was made with the model {model!r} ({dimension} numbers a vector); this run has "
                f"{self._model!r} ({self.dimension or 'unknown'} numbers). Vectors of two models cannot be compared: "
                f"run with {model!r}, choose another folder, or empty this one and save its memories again."
            )
            raise StoreConflictError(msg)
        self.dimension = dimension

    def _own(self) -> Iterator[Collection]:
        offset = 0
        while page := self._client.list_collections(limit=PAGE, offset=offset):
            yield from (one for one in page if "memstory:owner" in (one.metadata or {}))
            offset += PAGE

    def _get(self, name: str) -> Collection | None:
        try:
            return self._client.get_collection(name, embedding_function=None)
        except NotFoundError:
            return None

    def _make(self, name: str, stamp: dict[str, Any]) -> Collection:
        # Other code may pass a space for a collection that exists, and Chroma ignores it: `_check` looks afterwards.
        hnsw: CreateHNSWConfiguration = {**HNSW, "sync_threshold": self.sync_rows}
        return self._client.get_or_create_collection(
            name, metadata=stamp, configuration=CreateCollectionConfiguration(hnsw=hnsw), embedding_function=None
        )

    def _discard(self, name: str) -> None:
        if self._get(name) is not None:
            self._client.delete_collection(name)
