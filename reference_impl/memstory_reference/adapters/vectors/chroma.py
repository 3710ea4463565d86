"""The store of a folder: the exact store, with Chroma's index beside it for owners who are too large for a matrix."""

from __future__ import annotations

from pathlib import Path

from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.vectors.exact_store import EXACT_ROWS, FILE, ExactStore, Follower


async def open_chroma(
    folder: Path, *, model: str, dimension: int | None = None, exact_rows: int = EXACT_ROWS
) -> ExactStore:
    """Open the store in `folder`, which this store alone owns until it is closed.

    An owner of more than `exact_rows` rows is searched by Chroma's index, which is loaded and filled when first asked.

    Raises:
        StoreConflictError: another store has the folder, or made it with another model or dimension.
        SetupError: the folder cannot be written.
    """
    lock = FolderLock(folder)
    lock.acquire()
    try:
        return ExactStore(
            folder / FILE,
            model=model,
            dimension=dimension,
            make_follower=lambda: _follower(folder / "chroma"),
            exact_rows=exact_rows,
            release=lock.release,
        )
    except BaseException:
        lock.release()
        raise


def _follower(folder: Path) -> Follower:
    from memstory_reference.adapters.vectors.chroma_follower import ChromaFollower  # noqa: PLC0415

    return ChromaFollower(folder)
