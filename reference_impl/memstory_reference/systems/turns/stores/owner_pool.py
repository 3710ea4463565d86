"""From an owner's columns to the pool of one question: one matrix product, BM25 by postings, the turns beside; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.mapped_matrix import MappedMatrix
from memstory_reference.storage.vector_matrix import cosines, products
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import (
    NOBODY,
    Places,
    Pool,
    empty_pool,
    rarity,
    rows_of,
    saturation,
    with_neighbours,
)
from memstory_reference.systems.turns.stores.columns import Columns
from memstory_reference.systems.turns.stores.postings import Postings
from memstory_reference.systems.turns.stores.tables_store import microseconds
from memstory_reference.systems.turns.turn import KINDS


@dataclass(slots=True, kw_only=True)
class Index:
    """What is in memory of one owner; the matrix is None before the first vector is needed.

    `version` is that of the turns that are in it, 0 of none; turns with `stale` numbers were written since. `unfilled`
    are the numbers of those whose row of the matrix may not be written yet, and what cannot be read is `unreadable`.
    """

    columns: Columns = field(default_factory=Columns)
    postings: Postings = field(default_factory=Postings)
    matrix: MappedMatrix | None = None
    version: int = 0
    stale: set[int] = field(default_factory=set)
    unfilled: list[Sequence[int]] = field(default_factory=list)
    unreadable: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return self.columns.turns


def admitted_numbers(columns: Columns, conditions: Conditions) -> Places:
    """Return the numbers of the turns that meet the conditions except for `where`, ascending."""
    meets = columns["alive"].copy()
    if conditions.kinds:
        meets &= np.isin(columns["kind"], [KINDS.index(kind) for kind in conditions.kinds])
    if conditions.session is not None:
        meets &= columns["session"] == columns.session(conditions.session)
    if conditions.since is not None:
        meets &= columns["moment"] >= microseconds(conditions.since)
    if conditions.until is not None:
        meets &= columns["moment"] <= microseconds(conditions.until)
    return np.flatnonzero(meets)


def pool_of(index: Index, vector: NDArray[np.float32], stems: Sequence[str], size: int, among: Places | None) -> Pool:
    """Return the `size` nearest and the `size` best by words of the turns `among`, or of all, and those beside them."""
    columns = index.columns
    postings = [index.postings.of(stem) for stem in stems]
    holding = {stem: len(numbers) for stem, (numbers, _) in zip(stems, postings, strict=True) if len(numbers)}
    allowed = columns["alive"]
    if among is not None:
        allowed = np.zeros(columns.size, np.bool_)
        allowed[among] = True
    if index.matrix is None or not allowed.any():
        return empty_pool(holding, columns.turns, columns.mean_words)
    near = np.where(allowed, products(index.matrix.rows[: columns.size], vector), -np.inf)
    worded = np.zeros(columns.size)
    for numbers, times in postings:
        rare = rarity(len(numbers), columns.turns)
        worded[numbers] += rare * saturation(times, columns["words"][numbers], columns.mean_words)
    core = np.union1d(_best(near, size), _best(np.where(allowed & (worded > 0), worded, -np.inf), size))
    beside = np.concatenate(columns.neighbours(core))
    beside = beside[beside != NOBODY]
    numbers = np.union1d(core, beside[allowed[beside]])
    rows, vectors = columns.rows(numbers), index.matrix.rows[numbers]
    before, after = columns.neighbours(numbers)
    sides = [_admitted_rows(index.matrix, side, allowed) for side in (before, after)]
    return Pool(
        numbers=numbers,
        before=rows_of(numbers, before),
        after=rows_of(numbers, after),
        sessions=rows["session"].astype(np.int64),
        speakers=rows["speaker"].astype(np.int64),
        named=columns.speakers,
        moments=rows["moment"],
        signs=rows["signs"],
        words=rows["words"].astype(np.int64),
        cosines=cosines(vectors, vector),
        contexts=cosines(with_neighbours(vectors, *sides), vector),
        vectors=vectors,
        stems=tuple(stems),
        times=np.array([_at(numbers, *one) for one in postings], np.int64).reshape(len(stems), len(numbers)),
        holding=holding,
        turns=columns.turns,
        mean_words=columns.mean_words,
    )


def _admitted_rows(matrix: MappedMatrix, numbers: Places, allowed: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the vectors of turns that may be known, zeros for the others: what was said later shows nowhere."""
    rows: NDArray[np.float32] = matrix.rows[numbers]
    rows[(numbers == NOBODY) | ~allowed[numbers]] = 0
    return rows


def _at(numbers: Places, having: Places, times: Places) -> Places:
    rows = rows_of(having, numbers)
    return np.where(rows == NOBODY, 0, times[rows]) if len(having) else np.zeros(len(numbers), np.int64)


def _best(scores: NDArray[np.floating], size: int) -> Places:
    """Return the places of the best finite scores; of equal ones at the end, the first."""
    places: Places = np.flatnonzero(np.isfinite(scores))
    if size < len(places):
        finite = scores[places]
        least = np.partition(finite, -size)[-size]
        above, equal = places[finite > least], places[finite == least]
        places = np.concatenate([above, equal[: size - len(above)]])
    return places
