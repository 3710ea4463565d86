"""What every vector index accepts, checked before anything is written; pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memstory_reference.errors import InputError, OtherModelError, StoreConflictError
from memstory_reference.ports import Primitive, Record

Vector = Sequence[float] | NDArray[np.float32]

RESERVED = ("memstory:", "chroma:", "#", "$")
"""How a metadata key may not begin: the store's own rows, and the operators of Chroma (SEC-4)."""

INT64 = 2**63
COLLECTION_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){1,60}")


def checked_records(records: Sequence[Record], dimension: int | None) -> list[Record]:
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


def checked_ids(ids: Sequence[str]) -> list[str]:
    """Return the distinct ids in their order; an id that no row can have is left out."""
    if isinstance(ids, str):
        raise InputError(f"ids: expected a list of ids, got the text {ids!r}")
    for one in ids:
        if not isinstance(one, str):
            raise InputError(f"ids: expected texts, got {one!r} ({type(one).__name__})")
    return [one for one in dict.fromkeys(ids) if one and _is_unicode(one)]


def checked_where(where: Mapping[str, Primitive] | None) -> dict[str, Primitive]:
    """Return the filter as a dict; only plain values, for an operator object would read other rows (SEC-4)."""
    if where is None:
        return {}
    if not isinstance(where, Mapping):
        raise InputError(f"where: expected keys and values, got {where!r}")
    return {_checked_key(key): _checked_value(f"where[{key!r}]", value) for key, value in where.items()}


def checked_vector(vector: ArrayLike, dimension: int | None, *, what: str = "vector") -> NDArray[np.float32]:
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


def fill_vectors(records: Sequence[Record], stored: Callable[[str], Vector | None]) -> list[Record]:
    """Return the rows, each with a vector: one that came without keeps the one it has in the store."""
    return [record if record.vector is not None else _with_stored(record, stored(record.id)) for record in records]


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


def page_of_ids(ids: Sequence[str], limit: int | None, offset: int) -> Sequence[str]:
    """Return `limit` ids from `offset` on; all of them if limit is None.

    >>> page_of_ids(["a", "b", "c"], 1, 1), page_of_ids(["a", "b"], 0, 0)
    (['b'], [])
    """
    if offset < 0 or (limit is not None and limit < 0):
        raise InputError(f"limit and offset: expected numbers that are not negative, got {limit!r} and {offset!r}")
    return ids[offset:] if limit is None else ids[offset : offset + limit]


def equality_test(value: Primitive) -> Callable[[Primitive | None], bool]:
    """Return the test of a filter's value: True is not 1, but 1 is 1.0, as in Chroma.

    >>> equality_test(1)(1.0), equality_test(1)(True), equality_test("a")(None)
    (True, False, False)
    """
    if isinstance(value, bool):
        return lambda other: other is value
    return lambda other: other == value and not isinstance(other, bool)


def _with_stored(record: Record, vector: Vector | None) -> Record:
    if vector is None:
        raise InputError(f"row {record.id!r} is new and has no vector; embed its text first")
    return replace(record, vector=vector)


def _checked_record(record: Record, dimension: int | None) -> Record:
    where = f"row {checked_name('id', record.id)!r}"
    if not isinstance(record.text, str) or not _is_unicode(record.text):
        raise InputError(f"{where}: expected a text that can be written as UTF-8, got {record.text!r}")
    metadata = {
        _checked_key(key): _checked_value(f"{where}, metadata {key!r}", value)
        for key, value in record.metadata.items()
        if value is not None
    }
    vector = None if record.vector is None else checked_vector(record.vector, dimension, what=f"{where}: vector")
    return Record(id=record.id, text=record.text, metadata=metadata, vector=vector)


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
