"""Vector stores: Chroma in a folder, or on a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.vectors.chroma import OLD_FILE, open_chroma
from memstory_reference.adapters.vectors.exact_store import EXACT_ROWS, FILE

if TYPE_CHECKING:
    from memstory_reference.ports import Embedder, VectorStore


def same(store: VectorStore) -> VectorStore:
    """Return `store` itself: what `wrap` does where nothing is put around a store."""
    return store


Wrap = Callable[["VectorStore"], "VectorStore"]


def is_store(folder: Path) -> bool:
    """Say whether a vector store lies in `folder`; nothing is opened or made."""
    return any((folder / name).is_file() for name in (FILE, OLD_FILE))


async def reindex_store(folder: Path, embedder: Embedder) -> int:
    """Embed all texts of the store in `folder` again, by `embedder`; return how many."""
    from memstory_reference.adapters.vectors.reindexing import reindex  # noqa: PLC0415

    return await reindex(folder, embedder)


async def open_store(
    folder: Path, embedder: Embedder, *, server: str | None = None, exact_rows: int = EXACT_ROWS
) -> VectorStore:
    """Open the vector store for the vectors of `embedder`: of `server` (HOST:PORT), else in `folder`.

    Until it is closed this process owns the folder. An owner of more than `exact_rows` rows is
    searched by Chroma's index.
    """
    if server is None:
        return await open_chroma(folder, model=embedder.model, dimension=embedder.dimension, exact_rows=exact_rows)
    from memstory_reference.adapters.vectors.chroma_server import open_chroma_server  # noqa: PLC0415

    host, _, port = server.rpartition(":")
    return await open_chroma_server(host, int(port), model=embedder.model, dimension=embedder.dimension)
