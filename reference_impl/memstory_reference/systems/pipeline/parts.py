"""What the pipeline runs on: its models, its clock, and what counts, detects and ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel
from memstory_reference.ports import Embedder, NewId
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.pipeline.reading.detectors import Detectors
from memstory_reference.systems.pipeline.selection import Reranker
from memstory_reference.systems.pipeline.stores.pipeline_store import PipelineStore
from memstory_reference.text.words import WORDS, TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineParts:
    """What the pipeline runs on. `chat` of None summarises by rules, `reranker` of None blends scores.

    `release` is called when the store is closed: its folder may be opened again.
    """

    embedder: Embedder
    clock: Clock
    new_id: NewId
    chat: ChatModel | None = None
    reranker: Reranker | None = None
    detectors: Detectors = field(default_factory=Detectors)
    counter: TokenCounter = WORDS
    around_searches: Callable[[PipelineStore], PipelineStore] = lambda store: store
    release: Callable[[], None] = lambda: None
    tombstones: Tombstones = field(default_factory=NoTombstones)
