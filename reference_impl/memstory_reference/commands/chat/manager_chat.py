"""`memstory-reference chat --system manager`: a conversation with the manager memory, in this process."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Command, Conversation
from memstory_reference.commands.chat.watched_chat import WatchedChat
from memstory_reference.commands.memory.manager_desk import (
    DEFAULT_OWNER,
    OF_OTHERS,
    chosen_manager,
    memory_named,
    memory_row,
)
from memstory_reference.commands.memory_rows import Row, row_name, row_table
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.manager import open_manager
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.systems.manager.memories.memory import MemoryType
from memstory_reference.systems.manager.system import ManagerSystem


@asynccontextmanager
async def manager_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the conversation that was typed; at its end the memory is closed."""
    refuse_foreign(parsed, (*OF_OTHERS, "memory_mode", "toolset", "bus"), "does not belong to --system manager")
    owner, settings = checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner), chosen_manager(parsed)
    chat = WatchedChat(chat_of(settings, speech.part), speech.aside)
    system = await open_manager(settings, folder=settings.folder, embedder=embedder_of(settings), chat=chat)
    try:
        status = await system.status(owner)
        counts = ", ".join(f"{kind} {status[kind]}" for kind in MemoryType)
        speech.aside(f"The memory of {owner} in {settings.folder}: {counts}. Answers come from: {chat.name}.")
        speech.aside("/help lists the commands, /quit ends.")
        yield ManagerConversation(speech=speech, system=system, owner=owner)
    finally:
        await system.close()


@dataclass(kw_only=True)
class ManagerConversation(Conversation):
    """One owner's talk with the manager system."""

    help = """\
/facts             what is known for good, the newest last
/search TEXT       what is remembered, by meaning
/forget ID         delete one memory and the turns that repeat it
/new               start a new session: the memory stays, the conversation so far is out of sight
/quit              end, as Ctrl-D does; Ctrl-C stops an answer"""

    system: ManagerSystem
    owner: str
    _session: str = field(default_factory=random_id)

    async def turn(self, said: str) -> None:
        answer = await self.system.say(said, owner=self.owner, session=self._session)
        self.speech.answer(answer.answer)

    def commands(self) -> Mapping[str, Command]:
        return {"/facts": self._facts, "/search": self._search, "/forget": self._forget, "/new": self._new}

    async def _facts(self, _: str) -> None:
        facts = await self.system.manager.memories(self.owner, [MemoryType.FACT])
        self._show([memory_row(self.owner, one) for one in facts], "No facts.")

    async def _search(self, text: str) -> None:
        if not text:
            raise InputError("/search: say what to look for, such as '/search where I live'")
        found = await self.system.manager.search(self.owner, text, session=self._session, across=True)
        self._show([memory_row(self.owner, one.memory, one.score) for one in found], "No memories found.")

    async def _forget(self, name: str) -> None:
        if not name:
            raise InputError("/forget: give an id as /facts and /search show it")
        memory = await memory_named(self.system.manager, self.owner, name)
        gone = await self.system.forget(self.owner, memory.id)
        turns = f", and {len(gone) - 1} turns that repeat it" if len(gone) > 1 else ""
        self.speech.aside(f"Forgotten: {row_name(memory_row(self.owner, memory))}{turns}.")

    async def _new(self, _: str) -> None:
        self._session = random_id()
        self.speech.aside("A new session.")

    def _show(self, rows: list[Row], for_none: str) -> None:
        self.speech.aside(row_table(rows) if rows else for_none)
