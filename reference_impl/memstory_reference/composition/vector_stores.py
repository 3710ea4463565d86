"""Vector stores: Chroma in a folder, or on a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memstory_reference.ports import Embedder, VectorStore

STORE_FILE = "chroma.sqlite3"


def same(store: VectorStore) -> VectorStore:
    """Return `store` itself: what `wrap` does where nothing is put around a store."""
    return store


Wrap = Callable[["VectorStore"], "VectorStore"]


def is_store(folder: Path) -> bool:
    """Say whether a vector store lies in `folder`; nothing is opened or made."""
    return (folder / STORE_FILE).is_file()


async def open_store(
    folder: Path, embedder: Embedder, *, server: str | None = None, exact_rows: int | None = None
) -> VectorStore:
    """Open the vector store for the vectors of `embedder`: of `server` (HOST:PORT), else in `folder`.

    Until it is closed this process owns the folder. An owner of up to `exact_rows` rows is searched exactly in memory.
    """
    from memstory_reference.adapters.vectors.chroma import (  # noqa: PLC0415
        EXACT_ROWS,
        open_chroma,
        open_chroma_server,
    )

    if server is None:
        return await open_chroma(
            folder, model=embedder.model, dimension=embedder.dimension, exact_rows=exact_rows or EXACT_ROWS
        )
    host, _, port = server.rpartition(":")
    return await open_chroma_server(host, int(port), model=embedder.model, dimension=embedder.dimension)
