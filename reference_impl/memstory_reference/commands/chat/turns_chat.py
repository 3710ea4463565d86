"""`memstory-reference chat --system turns`: the turns memory as a command opens it, and a conversation with it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Command, Conversation
from memstory_reference.commands.layers_options import refuse_foreign
from memstory_reference.commands.terminal_text import printable
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.turns import open_turns
from memstory_reference.errors import InputError
from memstory_reference.ports import Json
from memstory_reference.storage.postgres.place import parse_place
from memstory_reference.systems.turns.context_block import line_of
from memstory_reference.systems.turns.settings import TurnsSettings, default_turns, read_turns
from memstory_reference.systems.turns.stores.sqlite_store import OWNERS_FILE
from memstory_reference.systems.turns.system import TurnsSystem

DEFAULT_OWNER = "default"
OF_OTHERS = ("user_id", "thread_id", "memory_mode", "toolset", "bus")
_SETTING_OF = {"store": "store", "embedder": "embedding_model", "chat": "chat"}


def chosen_turns(parsed: argparse.Namespace) -> TurnsSettings:
    """Return the settings that were typed: the settings' file first, then each option."""
    settings = read_turns(parsed.settings) if getattr(parsed, "settings", None) else default_turns()
    typed = {setting: getattr(parsed, option, None) for option, setting in _SETTING_OF.items()}
    changes: dict[str, Json] = {setting: value for setting, value in typed.items() if value is not None}
    return settings.changed(changes, "command line")


async def open_settings(settings: TurnsSettings, on_text: Callable[[str], None] | None = None) -> TurnsSystem:
    """Open the memory of `settings`; where there is none it is made."""
    return await open_turns(
        settings.folder,
        place=parse_place(settings.store) if settings.is_postgres else None,
        embedder=embedder_of(settings),
        chat=chat_of(settings, on_text),
        clock=SystemClock(),
        new_id=random_id,
        config=settings.config,
    )


@asynccontextmanager
async def opened_turns(
    settings: TurnsSettings, on_text: Callable[[str], None] | None = None, *, must_exist: bool = False
) -> AsyncIterator[TurnsSystem]:
    """Open the memory of `settings`; with `must_exist`, a folder without one is an InputError, and nothing is made."""
    if must_exist and not settings.is_postgres and not (settings.folder / OWNERS_FILE).is_file():
        raise InputError(
            f"{settings.store}: no turns are stored here. Name their folder or database with --store, or make one with "
            "'chat --system turns'"
        )
    system = await open_settings(settings, on_text)
    try:
        yield system
    finally:
        await system.close()


@asynccontextmanager
async def turns_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the conversation that was typed."""
    refuse_foreign(parsed, OF_OTHERS, "is not for the turns memory; it has --owner")
    settings, owner = chosen_turns(parsed), parsed.owner or DEFAULT_OWNER
    async with opened_turns(settings, speech.part) as system:
        status = await system.memory.status(owner)
        place = "Postgres" if settings.is_postgres else settings.store
        speech.aside(f"The memory of {printable(owner)} in {place}: {status['turns']} turns.")
        speech.aside("/help lists the commands, /quit ends.")
        yield TurnsConversation(speech=speech, system=system, owner=owner, session=random_id())


@dataclass(kw_only=True)
class TurnsConversation(Conversation):
    """One owner's conversation with the turns memory."""

    help: ClassVar[str] = "/recall TEXT shows what the memory finds, /status how much it holds, /quit ends."
    system: TurnsSystem
    owner: str
    session: str

    async def turn(self, said: str) -> None:
        answer = await self.system.say(said, owner=self.owner, session=self.session)
        self.speech.answer(answer.answer)

    def commands(self) -> Mapping[str, Command]:
        return {"/recall": self._recall, "/status": self._status}

    async def _recall(self, text: str) -> None:
        found = await self.system.memory.search(self.owner, text)
        self.speech.aside("\n".join(printable(line_of(one.turn)) for one in found) or "Nothing is found.")

    async def _status(self, _: str) -> None:
        status = await self.system.memory.status(self.owner)
        speakers = ", ".join(map(printable, status["speakers"])) or "none"
        self.speech.aside(f"turns {status['turns']}, speakers {speakers}")
