"""The pipeline memory, joined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.embedders import make_reranker
from memstory_reference.storage.tombstones import FILE, Tombstones
from memstory_reference.systems.pipeline.reading.detectors import Detectors
from memstory_reference.systems.pipeline.service import PipelineParts, PipelineService
from memstory_reference.systems.pipeline.stores.tables_store import EMBEDDED_FILE
from memstory_reference.systems.pipeline.system import PipelineSystem

if TYPE_CHECKING:
    from memstory.contract.clock import Clock
    from memstory.contract.models import ChatModel
    from memstory_reference.ports import Embedder, NewId
    from memstory_reference.systems.pipeline.recall import NearestMemories
    from memstory_reference.systems.pipeline.selection import Reranker
    from memstory_reference.systems.pipeline.settings import PipelineConfig, PipelineSettings

PIPELINE_FILE = EMBEDDED_FILE.name


async def open_pipeline_system(settings: PipelineSettings, *, embedder: Embedder, chat: ChatModel) -> PipelineSystem:
    """Open the pipeline of `settings` with the agent that talks for it; a stand-in writes no summaries."""
    memory = await open_pipeline(
        settings.folder,
        embedder=embedder,
        chat=None if "stand-in" in chat.name else chat,
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
        reranker=make_reranker(settings.reranker),
    )
    return PipelineSystem(memory=memory, chat=chat)


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
    wrap: Callable[[NearestMemories], NearestMemories] = lambda vectors: vectors,
) -> PipelineService:
    """Open the pipeline in `folder`, which this process then owns; StoreConflictError if another one does.

    Without a chat model it summarises by rules, without a re-ranker it blends.
    """
    from memstory_reference.adapters.folder_lock import FolderLock  # noqa: PLC0415

    lock = FolderLock(folder)
    lock.acquire()
    parts = PipelineParts(
        embedder=embedder,
        clock=clock,
        new_id=new_id,
        chat=chat,
        reranker=reranker,
        detectors=detectors or Detectors(),
        around_vectors=wrap,
        release=lock.release,
        tombstones=Tombstones(folder / FILE),
    )
    try:
        service = PipelineService(folder / PIPELINE_FILE, parts, config)
    except BaseException:
        lock.release()
        raise
    return service
