"""Vector stores: in a folder, on a Chroma server, or in Postgres."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.adapters.vectors.exact_store import FILE, MIGRATIONS, ExactStore, is_sound, open_exact_folder
from memstory_reference.composition.extras import open_shared_database
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.setting_rules import CHROMA, POSTGRES, SQLITE, CheckedSettings
from memstory_reference.storage.postgres.place import PostgresPlace, parse_place

if TYPE_CHECKING:
    from memstory_reference.ports import Embedder, VectorStore

LOG = logging.getLogger(__name__)
COLLECTIONS = "collections"
"""The part of a folder that Chroma's own persistence has."""


def no_wrap(store: VectorStore) -> VectorStore:
    """Return `store` itself: what `wrap` does where nothing is put around a store."""
    return store


def drop_damaged(folder: Path) -> None:
    """Delete the vectors in `folder` if their file cannot be read; only for who can make them again."""
    if is_sound(folder / FILE):
        return
    with FolderLock(folder):
        LOG.warning("%s: the vectors are damaged; they are made again", folder)
        for file in folder.glob(f"{FILE}*"):
            file.unlink()


def _other_engine(folder: Path, made_with: str) -> StoreConflictError:
    return StoreConflictError(
        f"{folder} was made with the setting 'store: {made_with}'. Keep that setting, or export there and import into "
        "another folder."
    )


def postgres_place(settings: CheckedSettings, store: str) -> PostgresPlace | None:
    """Return the database in which the memory of `settings` is, None for one on this machine.

    Raises:
        InputError: the engine `store` and the place do not go together, or the place is no such URL.
    """
    if settings.is_postgres and store != CHROMA:
        return parse_place(getattr(settings, settings.place))
    if settings.is_postgres or store == POSTGRES:
        raise InputError(
            f"'store: {store}' does not go with {settings.place}: 'store: {POSTGRES}' wants "
            "postgresql://USER:PASSWORD@HOST/DATABASE there, and the others a folder"
        )
    return None


async def open_store(
    folder: Path,
    embedder: Embedder,
    *,
    engine: str = SQLITE,
    server: str | None = None,
    place: PostgresPlace | None = None,
) -> VectorStore:
    """Open the vector store for the vectors of `embedder`: in `place`, of `server` (HOST:PORT), else in `folder`.

    There it is of the `engine`; until it is closed this process owns the folder, which the other engine refuses.
    """
    if place is not None:
        return await open_exact_schema(place, model=embedder.model, dimension=embedder.dimension)
    if server is None and (folder / "chroma.sqlite3").is_file() and not (folder / FILE).is_file():
        raise StoreConflictError(
            f"{folder} has its rows in Chroma itself, as a version before the first release wrote them; they are not "
            "read any more. Choose another folder"
        )
    if server is None and engine == CHROMA:
        if (folder / FILE).is_file():
            raise _other_engine(folder, SQLITE)
        from memstory_reference.adapters.vectors.chroma_store import open_chroma_folder  # noqa: PLC0415

        data = folder / COLLECTIONS
        return await open_chroma_folder(folder, data, model=embedder.model, dimension=embedder.dimension)
    if server is None:
        if (folder / COLLECTIONS).is_dir():
            raise _other_engine(folder, CHROMA)
        return open_exact_folder(folder, model=embedder.model, dimension=embedder.dimension)
    from memstory_reference.adapters.vectors.chroma_store import open_chroma_server  # noqa: PLC0415

    host, _, port = server.rpartition(":")
    return await open_chroma_server(host, int(port), model=embedder.model, dimension=embedder.dimension)


async def open_exact_schema(
    place: PostgresPlace, *, model: str, dimension: int | None = None, memory: str = "topics and manager"
) -> ExactStore:
    """Open the vector store in the schema of `place`, which says that it is of `memory`.

    Raises:
        SetupError: the server refuses the URL's user or database.
        OtherModelError, StoreConflictError: its vectors are of another model, or something else made it.
        UnavailableError: nobody answers.
    """
    database = await open_shared_database(place, MIGRATIONS, memory=memory, model=model)
    try:
        return await database.lane.run(partial(ExactStore, database, model=model, dimension=dimension))
    except BaseException:
        await database.aclose()
        raise
