"""The pipeline memory, joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memstory_reference.adapters.store_folder import FolderLock
from memstory_reference.composition.declaration import MemoryPorts, MemorySystem, opening
from memstory_reference.composition.embedders import make_reranker
from memstory_reference.composition.extras import open_shared_database
from memstory_reference.storage.sql_database import Database
from memstory_reference.systems.pipeline.memory import PipelineMemory
from memstory_reference.systems.pipeline.parts import PipelineParts
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.systems.pipeline.tables import EMBEDDED_FILE, FILE_SCHEMA, MIGRATIONS, SCHEMA_VERSION

if TYPE_CHECKING:
    from memstory_reference.storage.sql_database import SqlDatabase
    from memstory_reference.systems.pipeline.parts import Reranker


async def open_pipeline(
    settings: PipelineSettings, ports: MemoryPorts, reranker: Reranker | None = None
) -> PipelineMemory:
    """Open the pipeline in its folder, which this process then owns, or in Postgres, which many may share.

    Without a language model it summarises by rules; without a re-ranker, given or of the settings, it blends.
    """
    place, model = ports.place_of(settings), ports.embedder.model
    async with opening() as opened:
        lock = FolderLock(settings.folder)
        if place is None:
            opened.enter_context(lock)
            about = {"schema": SCHEMA_VERSION, "model": model}
            database: SqlDatabase = Database(settings.folder / EMBEDDED_FILE.name, schema=FILE_SCHEMA, about=about)
        else:
            database = await open_shared_database(place, MIGRATIONS, memory="pipeline", model=model)
        opened.push_async_callback(database.aclose)
        parts = PipelineParts(
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            talker=ports.chat,
            chat=ports.model,
            reranker=reranker or make_reranker(settings.reranker),
            around_searches=ports.wrap,
            release=lock.release,
            tombstones=ports.tombstones(settings, opened),
        )
        return PipelineMemory(database, parts, settings, ports.store_name(settings))


PIPELINE = MemorySystem(
    name="pipeline",
    kind=PipelineSettings,
    memory=PipelineMemory,
    opener=open_pipeline,
    files=[EMBEDDED_FILE],
    owner="me",
)
