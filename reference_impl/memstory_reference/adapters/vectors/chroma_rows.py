"""The rows of one Chroma collection, blocking: batches, filters, and metadata replaced whole."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from chromadb.api.models.Collection import Collection
from numpy.typing import NDArray

from memstory_reference.ports import Primitive, Record
from memstory_reference.storage.vector_matrix import DIGITS

VECTOR_KEY = "memstory:vector"
"""On a server each row carries its vector in its metadata too. Chroma trims its log once the index files are written,
and a process killed while it writes them loses the vectors; the copy survives."""

TIE_ROOM, TIE_LIMIT = 16, 1_000
"""Rows asked for beyond k, at first and at most, so that rows which tie at the cut are chosen by id."""


class ChromaRows:
    """Blocking access to a collection; `batch` is the most rows that the client takes at once.

    One with copies has each vector a second time.
    """

    def __init__(self, collection: Collection, batch: int, *, has_copies: bool = False) -> None:
        self.collection = collection
        self._batch = batch
        self._has_copies = has_copies

    def put(self, records: Sequence[Record], old: Mapping[str, Record]) -> None:
        """Write rows that have vectors; `old` holds the rows that exist, whose other metadata is removed."""
        for part in _parts(records, self._batch):
            self.collection.upsert(
                ids=[record.id for record in part],
                documents=[record.text for record in part],
                embeddings=np.array([record.vector for record in part], dtype=np.float32),
                metadatas=[self._metadata(record, old.get(record.id)) for record in part],
            )

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows; return the ids that existed."""
        gone = [one for part in _parts(ids, self._batch) for one in self._existing(part)]
        for part in _parts(gone, self._batch):
            self.collection.delete(ids=list(part))
        return gone

    def read(self, ids: Sequence[str]) -> dict[str, Record]:
        """Return the rows that exist, by id, in the order of `ids`, with their vectors."""
        found: dict[str, Record] = {}
        for part in _parts(ids, self._batch):
            asked: list[Any] = ["documents", "metadatas", *([] if self._has_copies else ["embeddings"])]
            answer = self.collection.get(ids=list(part), include=asked)
            # Copies are in the metadata.
            embeddings: Any = [None] * len(answer["ids"]) if self._has_copies else answer["embeddings"]
            columns = (answer["ids"], answer["documents"] or [], answer["metadatas"] or [], embeddings)
            found |= {one: _record(one, *rest) for one, *rest in zip(*columns, strict=True)}
        return {one: found[one] for one in ids if one in found}

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids that match, sorted."""
        return sorted(self.collection.get(where=_where(where), include=[])["ids"])

    def near(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> dict[str, float]:
        """Return the cosines of about the k nearest rows by Chroma's index, and of those that tie with the last."""
        size = self.collection.count()
        if k <= 0 or size == 0:
            return {}
        wanted = min(k + TIE_ROOM, size)
        while True:
            found = self._query(vector, wanted, where)
            is_all = len(found) < wanted or wanted == size
            if is_all or wanted >= k + TIE_LIMIT or found[-1][1] < found[k - 1][1]:
                return dict(found)
            wanted = min(2 * wanted, size, k + TIE_LIMIT)

    def _query(
        self, vector: NDArray[np.float32], wanted: int, where: Mapping[str, Primitive]
    ) -> list[tuple[str, float]]:
        """Return ids and cosines of one query, nearest first: the rows themselves are read once the cut is made."""
        answer = self.collection.query(
            query_embeddings=vector[np.newaxis], n_results=wanted, where=_where(where), include=["distances"]
        )
        distances = (answer["distances"] or [[]])[0]
        return [
            (one, round(max(-1.0, 1.0 - distance), DIGITS))
            for one, distance in zip(answer["ids"][0], distances, strict=True)
        ]

    def count(self) -> int:
        """Count all rows."""
        return int(self.collection.count())

    def _metadata(self, record: Record, old: Record | None) -> dict[str, Primitive | None]:
        """Return what makes Chroma's merge a replacement: a None deletes a key that the row had."""
        stale = dict.fromkeys(old.metadata if old else ())
        vector = np.asarray(record.vector, dtype="<f4").tobytes() if self._has_copies else b""
        return {**stale, **record.metadata, VECTOR_KEY: base64.b64encode(vector).decode("ascii")}

    def _existing(self, ids: Sequence[str]) -> list[str]:
        known = set(self.collection.get(ids=list(ids), include=[])["ids"])
        return [one for one in ids if one in known]


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


def _parts(rows: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))
