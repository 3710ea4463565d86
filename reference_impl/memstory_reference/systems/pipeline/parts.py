"""What the pipeline runs on: its models, its clock, and what counts, detects and ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel
from memstory_reference.ports import Embedder, NewId
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.pipeline.pipeline_store import PipelineStore
from memstory_reference.systems.pipeline.reading import Detectors
from memstory_reference.text.words import WORDS, TokenCounter


class Reranker(Protocol):
    """A model that scores pairs of a query and a text; higher is better, in any range."""

    name: str

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite score a text; UnavailableError or SetupError where the model cannot be had."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineParts:
    """What the pipeline runs on. `chat` of None summarises by rules, `reranker` of None blends scores; `talker` talks.

    `release` is called when the store is closed: its folder may be opened again.
    """

    embedder: Embedder
    clock: Clock
    new_id: NewId
    talker: ChatModel
    chat: ChatModel | None = None
    reranker: Reranker | None = None
    detectors: Detectors = field(default_factory=Detectors)
    counter: TokenCounter = WORDS
    around_searches: Callable[[PipelineStore], PipelineStore] = lambda store: store
    release: Callable[[], None] = lambda: None
    tombstones: Tombstones = field(default_factory=NoTombstones)
