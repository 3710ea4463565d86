"""The pipeline memory, joined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memstory_reference.composition.vector_stores import Wrap, open_store, same
from memstory_reference.systems.pipeline.service import PipelineParts, PipelineService

if TYPE_CHECKING:
    from memstory_reference.ports import ChatModel, Clock, Embedder, NewId
    from memstory_reference.systems.pipeline.config import PipelineConfig
    from memstory_reference.systems.pipeline.selection import Reranker

PIPELINE_FILE = "pipeline.sqlite3"
EXACT_ROWS = 20_000  # 30 MB a user in use: at 10,000 memories half the time of the index, and none is missed


async def open_pipeline(
    folder: Path,
    *,
    embedder: Embedder,
    chat: ChatModel | None,
    clock: Clock,
    new_id: NewId,
    config: PipelineConfig,
    reranker: Reranker | None = None,
    wrap: Wrap = same,
) -> PipelineService:
    """Open the pipeline in `folder`; without a chat model it summarises by rules, without a re-ranker it blends."""
    store = await open_store(folder / "vectors", embedder, exact_rows=EXACT_ROWS)
    try:
        parts = PipelineParts(
            vectors=wrap(store), embedder=embedder, clock=clock, new_id=new_id, chat=chat, reranker=reranker
        )
        service = PipelineService(folder / PIPELINE_FILE, parts, config)
        await service.open()
    except BaseException:
        await store.close()
        raise
    return service
