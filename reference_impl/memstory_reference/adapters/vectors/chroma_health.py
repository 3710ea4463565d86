"""Is every row within reach of a query? Chroma's index can lose live rows without a word (chroma#7758); blocking."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from itertools import islice

import numpy as np
from chromadb.errors import InternalError

from memstory_reference.adapters.vectors.chroma_catalog import Catalog
from memstory_reference.adapters.vectors.chroma_rows import ChromaRows

logger = logging.getLogger(__name__)

SAMPLE = 64
"""Rows asked for on open."""

ROOM = 10
NEAR = 1e-4
"""A row within this distance of the query is its twin, and may stand in its place."""


def checked(catalog: Catalog, rows: ChromaRows) -> ChromaRows:
    """Return the rows, in a rebuilt collection if some of a sample cannot be reached and the store is ours alone."""
    ids = rows.select({})
    chosen = sorted(random.Random(len(ids)).sample(ids, min(SAMPLE, len(ids))))  # noqa: S311  (no secret: a sample)
    lost = unreachable(rows, chosen)
    if not lost:
        return rows
    share = (rows.collection.name, len(lost), len(chosen))
    if not catalog.is_owned:  # another client may be writing, and its rows would not be copied
        logger.warning("%s: a query misses %d of %d sampled rows; stop the server and open its folder once", *share)
        return rows
    logger.warning("%s: a query misses %d of %d sampled rows; the index is rebuilt", *share)
    return catalog.rebuild(rows)


def mended(catalog: Catalog, rows: ChromaRows) -> ChromaRows:
    """Return the rows, rebuilt if the index has no vector for some of them: its files were damaged and set aside."""
    ids = rows.select({})
    try:
        for start in range(0, len(ids), 1000):
            rows.collection.get(ids=ids[start : start + 1000], include=["embeddings"])
    except InternalError:
        logger.warning("%s: the index files were damaged; rebuilt from %d rows", rows.collection.name, len(ids))
        return catalog.rebuild(rows)
    return checked(catalog, rows)


def unreachable(rows: ChromaRows, ids: Sequence[str]) -> list[str]:
    """Return those of `ids` that a query with their own vector does not find."""
    waiting = iter(rows.read(ids).values())
    lost: list[str] = []
    while part := list(islice(waiting, 500)):
        size = min(ROOM, rows.count())
        vectors = np.array([record.vector for record in part], dtype=np.float32)
        answer = rows.collection.query(query_embeddings=vectors, n_results=size, include=["distances"])
        found = zip(part, answer["ids"], answer["distances"] or [], strict=True)
        lost += [row.id for row, hits, far in found if row.id not in hits and (len(far) < size or far[-1] > NEAR)]
    return lost
