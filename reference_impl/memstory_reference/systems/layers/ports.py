"""What the layers memory needs of the world outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel
from memstory_reference.ports import Embedder, NewId
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.layers.log_entries import CrisisLogRecord, SessionFeedbackRecord
from memstory_reference.systems.layers.stores.layers_store import LayersStore
from memstory_reference.systems.layers.stores.log_store import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersStores:
    """Where things are kept, each apart; open, and closed by the memory. `release` is called when they are closed.

    `shared` if other processes may use them at the same time.
    """

    memory: LayersStore
    crisis: Log[CrisisLogRecord]
    feedback: Log[SessionFeedbackRecord]
    release: Callable[[], None] = lambda: None
    shared: bool = False
    tombstones: Tombstones = field(default_factory=NoTombstones)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersPorts:
    """What the memory needs of the world outside.

    Without `embedder` retrieval is by words alone; without `model` all is decided by documented rules.
    """

    stores: LayersStores
    embedder: Embedder | None
    model: ChatModel | None
    clock: Clock
    new_id: NewId
