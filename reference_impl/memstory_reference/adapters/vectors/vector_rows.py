"""What every vector index does alike: it checks what is given, and does its blocking work in the store's lane."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memstory_reference.errors import InputError, OtherModelError, StoreConflictError
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.storage.sql_database import SerialThread

T = TypeVar("T")

RESERVED = ("memstory:", "chroma:", "#", "$")
"""How a metadata key may not begin: the store's own rows, and the operators of Chroma (SEC-4)."""

INT64 = 2**63
COLLECTION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){1,60}")


class OwnerRows(Protocol):
    """One owner's rows, blocking, to be used in their `lane`; they trust what they are given."""

    lane: SerialThread

    @property
    def dimension(self) -> int | None:
        """How many numbers each vector has; None before the first row of the store."""
        ...

    def put(self, records: Sequence[Record]) -> None:
        """Write rows that have vectors."""
        ...

    def drop(self, ids: Sequence[str]) -> list[str]:
        """Delete rows; return the ids that existed."""
        ...

    def read(self, ids: Sequence[str]) -> list[Record]:
        """Return the rows that exist, in the order of `ids`, with their vectors."""
        ...

    def select(self, where: Mapping[str, Primitive]) -> list[str]:
        """Return the ids of the rows that match, sorted."""
        ...

    def nearest(self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive]) -> list[Match]:
        """Return the k nearest rows, ties by id."""
        ...

    def count(self) -> int:
        """Count all rows."""
        ...


class CheckedIndex:
    """A `VectorIndex` over the rows that are lent to it for each call."""

    def __init__(self, lend: Callable[[], AbstractAsyncContextManager[OwnerRows]]) -> None:
        self._lend = lend

    async def upsert(self, records: Sequence[Record]) -> None:
        """Write rows; one without a vector keeps the vector that it has."""
        given = list(records)
        await self._run(lambda rows: _write(rows, given))

    async def get(self, ids: Sequence[str]) -> Sequence[Record]:
        wanted = _checked_ids(ids)
        return await self._run(lambda rows: _plain(rows, wanted))

    async def query(
        self, vector: NDArray[np.float32], k: int, where: Mapping[str, Primitive] | None = None
    ) -> Sequence[Match]:
        plain = _checked_where(where)
        return await self._run(lambda rows: rows.nearest(_checked_vector(vector, rows.dimension), max(k, 0), plain))

    async def list(
        self, where: Mapping[str, Primitive] | None = None, limit: int | None = None, offset: int = 0
    ) -> Sequence[Record]:
        plain = _checked_where(where)
        return await self._run(lambda rows: _plain(rows, _page_of_ids(rows.select(plain), limit, offset)))

    async def delete(self, ids: Sequence[str]) -> Sequence[str]:
        wanted = _checked_ids(ids)
        return await self._run(lambda rows: rows.drop(wanted))

    async def count(self, where: Mapping[str, Primitive] | None = None) -> int:
        plain = _checked_where(where)
        return await self._run(lambda rows: len(rows.select(plain)) if plain else rows.count())

    async def _run(self, work: Callable[[OwnerRows], T]) -> T:
        async with self._lend() as rows:
            return await rows.lane.run(work, rows)


def _write(rows: OwnerRows, records: Sequence[Record]) -> None:
    ready = _checked_records(records, rows.dimension)
    bare = [row.id for row in ready if row.vector is None]
    stored = {row.id: row.vector for row in rows.read(bare)} if bare else {}
    for one in bare:
        if stored.get(one) is None:
            raise InputError(f"row {one!r} is new and has no vector; embed its text first")
    if ready:
        rows.put([replace(row, vector=stored[row.id]) if row.vector is None else row for row in ready])


def _plain(rows: OwnerRows, ids: Sequence[str]) -> Sequence[Record]:
    return [replace(row, vector=None) for row in rows.read(ids)]


def checked_name(what: str, value: str) -> str:
    """Return the name of an owner or a row: a text that is not empty and can be written."""
    if not isinstance(value, str) or not value or not _is_unicode(value):
        raise InputError(f"{what}: expected a text that is not empty, got {value!r}")
    return value


def check_model(place: str, made: tuple[str, int], wanted: tuple[str, int | None]) -> None:
    """Raise StoreConflictError if a store was made with another model or dimension than this run has (X-4)."""
    (model, dimension), (other, numbers) = made, wanted
    if model != other or numbers not in {None, dimension}:
        raise OtherModelError(
            f"{place} was made with the model {model!r} ({dimension} numbers a vector); this run has "
            f"{other!r} ({numbers or 'unknown'} numbers). Vectors of two models cannot be compared: "
            f"run with {model!r}, choose another folder, or embed its texts again (memory reindex)",
            model,
        )


def checked_collection(name: str) -> str:
    """Return the name of a collection, of a form that Chroma takes too."""
    if not isinstance(name, str) or not COLLECTION_NAME.fullmatch(name):
        msg = f"collection {name!r}: expected 2 to 61 letters, digits, '-', '_', single '.'; the first no sign"
        raise InputError(msg)
    return name


def normalize(vector: ArrayLike) -> NDArray[np.float32]:
    """Return a float32 copy of length 1; a vector of length 0, or one that is not finite, is a ValueError.

    >>> [round(float(part), 2) for part in normalize([3.0, 4.0])]
    [0.6, 0.8]
    """
    wide = np.asarray(vector, dtype=np.float64)
    if wide.ndim != 1 or wide.size == 0:
        raise ValueError(f"a vector is a flat row of numbers, this one has the shape {wide.shape}")
    largest = float(np.max(np.abs(wide)))
    if not np.isfinite(largest) or largest == 0.0:
        raise ValueError("a vector has finite numbers and a length above 0")
    scaled = wide / largest  # so that squaring neither overflows nor vanishes
    narrow: NDArray[np.float32] = (scaled / np.linalg.norm(scaled)).astype(np.float32)
    return narrow


def meets(where: Mapping[str, Primitive]) -> Callable[[Mapping[str, Primitive | None]], bool]:
    """Return the test whether metadata meet a filter: True is not 1, but 1 is 1.0, as in Chroma.

    >>> [meets({"n": 1})(metadata) for metadata in ({"n": 1.0, "m": 2}, {"n": True}, {})]
    [True, False, False]
    """
    tests = [(key, _equality_test(value)) for key, value in where.items()]
    return lambda metadata: all(is_same(metadata.get(key)) for key, is_same in tests)


def _checked_records(records: Sequence[Record], dimension: int | None) -> list[Record]:
    """Return the rows ready to write: ids distinct (the last wins), no None in metadata, vectors of length 1."""
    rows: dict[str, Record] = {}
    for record in records:
        row = _checked_record(record, dimension)
        earlier = rows.pop(row.id, None)
        if row.vector is None and earlier is not None:
            row = replace(row, vector=earlier.vector)
        rows[row.id] = row
        if dimension is None and row.vector is not None:
            dimension = len(row.vector)
    return list(rows.values())


def _checked_ids(ids: Sequence[str]) -> list[str]:
    """Return the distinct ids in their order; an id that no row can have is left out."""
    if isinstance(ids, str):
        raise InputError(f"ids: expected a list of ids, got the text {ids!r}")
    for one in ids:
        if not isinstance(one, str):
            raise InputError(f"ids: expected texts, got {one!r} ({type(one).__name__})")
    return [one for one in dict.fromkeys(ids) if one and _is_unicode(one)]


def _checked_where(where: Mapping[str, Primitive] | None) -> dict[str, Primitive]:
    """Return the filter as a dict; only plain values, for an operator object would read other rows (SEC-4)."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise InputError(f"where: expected keys and values, got {where!r}")
    return {_checked_key(key): _checked_value(f"where[{key!r}]", value) for key, value in where.items()}


def _checked_vector(vector: ArrayLike, dimension: int | None, *, what: str = "vector") -> NDArray[np.float32]:
    """Return the vector at length 1; one of another dimension than the store's is refused."""
    try:
        ready = normalize(vector)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{what}: {problem}") from problem
    if dimension is not None and len(ready) != dimension:
        raise StoreConflictError(
            f"{what} has {len(ready)} numbers, the store holds vectors of {dimension}. "
            "Use the embedder that the store was made with, or another folder."
        )
    return ready


def _page_of_ids(ids: Sequence[str], limit: int | None, offset: int) -> Sequence[str]:
    """Return `limit` ids from `offset` on; all of them if limit is None.

    >>> _page_of_ids(["a", "b", "c"], 1, 1), _page_of_ids(["a", "b"], 0, 0)
    (['b'], [])
    """
    if offset < 0 or (limit is not None and limit < 0):
        raise InputError(f"limit and offset: expected numbers that are not negative, got {limit!r} and {offset!r}")
    return ids[offset:] if limit is None else ids[offset : offset + limit]


def _checked_record(record: Record, dimension: int | None) -> Record:
    where = f"row {checked_name('id', record.id)!r}"
    if not isinstance(record.text, str) or not _is_unicode(record.text):
        raise InputError(f"{where}: expected a text that can be written as UTF-8, got {record.text!r}")
    metadata = {
        _checked_key(key): _checked_value(f"{where}, metadata {key!r}", value)
        for key, value in record.metadata.items()
        if value is not None
    }
    vector = None if record.vector is None else _checked_vector(record.vector, dimension, what=f"{where}: vector")
    return Record(id=record.id, text=record.text, metadata=metadata, vector=vector)


def _equality_test(value: Primitive) -> Callable[[Primitive | None], bool]:
    if isinstance(value, bool):
        return lambda other: other is value
    return lambda other: other == value and not isinstance(other, bool)


def _checked_key(key: object) -> str:
    if not isinstance(key, str) or not key or key.startswith(RESERVED) or not _is_unicode(key):
        msg = f"metadata key {key!r}: expected a text that is not empty and does not begin with {', '.join(RESERVED)}"
        raise InputError(msg)
    return key


def _checked_value(what: str, value: object) -> Primitive:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and _is_unicode(value):
        return value
    if isinstance(value, int) and -INT64 <= value < INT64:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    msg = f"{what}: expected a text, a finite number of 64 bits, true or false; got {value!r} ({type(value).__name__})"
    raise InputError(msg)


def _is_unicode(text: str) -> bool:
    """Say whether the text has no lone surrogate, which no file can hold."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
