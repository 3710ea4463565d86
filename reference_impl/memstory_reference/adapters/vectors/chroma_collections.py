"""Collections of Chroma: how ours are named, made and told from those of others; blocking."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import httpx
import numpy as np
from chromadb.api import ClientAPI
from chromadb.api.collection_configuration import CreateCollectionConfiguration, CreateHNSWConfiguration
from chromadb.api.models.Collection import Collection
from chromadb.errors import ChromaError, NotFoundError

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.adapters.vectors.vector_rows import checked_collection, checked_name
from memstory_reference.errors import StoreConflictError
from memstory_reference.ports import Record

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
