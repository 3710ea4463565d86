"""What the layers memory needs of the world outside, and what its operator has decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel
from memstory_reference.ports import Embedder, NewId
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.layers.layers_store import LayersStore
from memstory_reference.systems.layers.logs import CrisisLogRecord, Log, SessionFeedbackRecord
from memstory_reference.systems.layers.settings import LayersSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersPorts:
    """Things are kept each apart; the stores are open, and closed by the memory, which then calls `release`.

    Without `embedder` retrieval is by words alone; without `model` all is decided by documented rules. `shared` if
    other processes may use the stores at the same time.
    """

    store: LayersStore
    crisis: Log[CrisisLogRecord]
    feedback: Log[SessionFeedbackRecord]
    tombstones: Tombstones = field(default_factory=NoTombstones)
    release: Callable[[], None] = lambda: None
    shared: bool = False
    embedder: Embedder | None
    model: ChatModel | None
    clock: Clock
    new_id: NewId
    config: LayersSettings
