"""The layers memory opened by a command, and one owner's conversation with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition import layers
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.layers import LAYERS_FILE
from memstory_reference.errors import InputError
from memstory_reference.ports import BY_RULES
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.layers.modes import MemoryMode
from memstory_reference.systems.layers.service import LayersService
from memstory_reference.systems.layers.settings import NO_EMBEDDER, RULES, LayersSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedLayers:
    """A memory with the name of what answers."""

    service: LayersService
    chat: str


async def open_layers(
    settings: LayersSettings, mode: MemoryMode = MemoryMode.LOCAL, on_text: Callable[[str], None] | None = None
) -> OpenedLayers:
    """Open the memory of `settings`; in incognito no embedder is made and nothing is touched."""
    embedder = None
    if mode.is_durable and settings.embedding_model != NO_EMBEDDER:
        embedder = embedder_of(settings)
    model = None
    if settings.chat != RULES:
        model = chat_of(settings, on_text, incognito=not mode.is_durable)
    service = await layers.open_layers(
        Path(settings.store),
        place=parse_place(settings.store) if settings.is_postgres else None,
        embedder=embedder,
        model=model,
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
        mode=mode,
    )
    return OpenedLayers(service=service, chat=model.name if model else BY_RULES)


async def open_stored_layers(settings: LayersSettings) -> LayersService:
    """Open a memory that is there; where there is none, InputError, and nothing is made."""
    if not settings.is_postgres and not (Path(settings.store) / LAYERS_FILE).is_file():
        raise InputError(
            f"{settings.store}: no layers are stored here. Name their folder or database with --store, or make one "
            "with 'chat --system layers'"
        )
    return (await open_layers(settings)).service
