"""The turns memory as commands open it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memstory.contract.models import ChatModel
from memstory.contract.values import Json
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.turns import open_turns
from memstory_reference.errors import InputError
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.turns.settings import TurnsSettings, default_turns, read_turns
from memstory_reference.systems.turns.stores.sqlite_store import OWNERS_FILE
from memstory_reference.systems.turns.system import TurnsSystem

DEFAULT_OWNER = "default"
_SETTING_OF = {"store": "store", "embedder": "embedding_model", "chat": "chat"}


def chosen_turns(parsed: argparse.Namespace) -> TurnsSettings:
    """Return the settings that were typed: the settings' file first, then each option."""
    settings = read_turns(parsed.settings) if getattr(parsed, "settings", None) else default_turns()
    typed = {setting: getattr(parsed, option, None) for option, setting in _SETTING_OF.items()}
    changes: dict[str, Json] = {setting: value for setting, value in typed.items() if value is not None}
    return settings.changed(changes, "command line")


async def open_settings(settings: TurnsSettings, chat: ChatModel | None = None) -> TurnsSystem:
    """Open the memory of `settings`; where there is none it is made. `chat` stands for the model of the settings."""
    return await open_turns(
        settings.folder,
        place=parse_place(settings.store) if settings.is_postgres else None,
        embedder=embedder_of(settings),
        chat=chat or chat_of(settings),
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
    )


@asynccontextmanager
async def open_turns_of(
    settings: TurnsSettings, chat: ChatModel | None = None, *, must_exist: bool = False
) -> AsyncIterator[TurnsSystem]:
    """Open the memory of `settings`; with `must_exist`, a folder without one is an InputError, and nothing is made."""
    if must_exist and not settings.is_postgres and not (settings.folder / OWNERS_FILE).is_file():
        raise InputError(
            f"{settings.store}: no turns are stored here. Name their folder or database with --store, or make one with "
            "'chat --system turns'"
        )
    system = await open_settings(settings, chat)
    try:
        yield system
    finally:
        await system.close()
