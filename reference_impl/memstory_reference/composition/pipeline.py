"""The pipeline memory, joined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.folder_lock import FolderLock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.embedders import make_reranker
from memstory_reference.composition.extras import POSTGRES_DRIVER, require_extra
from memstory_reference.composition.vector_stores import postgres_place
from memstory_reference.setting_rules import POSTGRES, SQLITE
from memstory_reference.storage.database_store import Database
from memstory_reference.storage.tombstones import FILE, NoTombstones, Tombstones
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.parts import PipelineParts
from memstory_reference.systems.pipeline.reading.detectors import Detectors
from memstory_reference.systems.pipeline.service import PipelineService
from memstory_reference.systems.pipeline.stores.tables_store import EMBEDDED_FILE, MIGRATIONS, SCHEMA, SCHEMA_VERSION

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.storage.postgres.place import PostgresPlace
    from memstory_reference.storage.sql_database import SqlDatabase
    from memstory_reference.systems.pipeline.selection import Reranker
    from memstory_reference.systems.pipeline.settings import PipelineConfig, PipelineSettings
    from memstory_reference.systems.pipeline.stores.pipeline_store import PipelineStore

PIPELINE_FILE = EMBEDDED_FILE.name


async def open_pipeline_memory(settings: PipelineSettings, *, embedder: Embedder, chat: ChatModel) -> PipelineMemory:
    """Open the pipeline of `settings` with the model that talks for it; a stand-in writes no summaries."""
    service = await open_pipeline(
        settings.folder,
        embedder=embedder,
        chat=None if "stand-in" in chat.name else chat,
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
        reranker=make_reranker(settings.reranker),
        place=postgres_place(settings, settings.store),
    )
    return PipelineMemory(service, chat, POSTGRES if settings.is_postgres else SQLITE)


async def open_pipeline(
    folder: Path,
    *,
    embedder: Embedder,
    chat: ChatModel | None,
    clock: Clock,
    new_id: NewId,
    config: PipelineConfig,
    reranker: Reranker | None = None,
    detectors: Detectors | None = None,
    wrap: Callable[[PipelineStore], PipelineStore] = lambda store: store,
    place: PostgresPlace | None = None,
) -> PipelineService:
    """Open the pipeline in `folder`, which this process then owns, or in `place`, which many may share.

    Without a chat model it summarises by rules, without a re-ranker it blends.
    """
    if place is None:
        database, release = _own_database(folder, embedder.model)
    else:
        database, release = await _shared_database(place, embedder.model), lambda: None
    try:
        parts = PipelineParts(
            embedder=embedder,
            clock=clock,
            new_id=new_id,
            chat=chat,
            reranker=reranker,
            detectors=detectors or Detectors(),
            around_searches=wrap,
            release=release,
            tombstones=Tombstones(folder / FILE) if place is None else NoTombstones(),
        )
        return PipelineService(database, parts, config)
    except BaseException:
        await database.aclose()
        release()
        raise


def _own_database(folder: Path, model: str) -> tuple[SqlDatabase, Callable[[], None]]:
    """Return the database of `folder`, and what lets the folder go; StoreConflictError if another process has it."""
    with FolderLock(folder).opening() as release:
        about = {"schema": SCHEMA_VERSION, "model": model}
        return Database(folder / PIPELINE_FILE, schema=SCHEMA, about=about), release


async def _shared_database(place: PostgresPlace, model: str) -> SqlDatabase:
    with require_extra(*POSTGRES_DRIVER):
        from memstory_reference.storage.postgres.postgres_database_store import open_postgres_database  # noqa: PLC0415
    return await open_postgres_database(place, MIGRATIONS, memory="pipeline", model=model)
