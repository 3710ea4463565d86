"""`memstory-reference chat --system turns`: a conversation with the turns memory."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Command, Conversation
from memstory_reference.commands.chat.watched_chat import WatchedChat
from memstory_reference.commands.memory.opened_turns import DEFAULT_OWNER, chosen_turns, open_turns_of
from memstory_reference.commands.memory.turns_desk import turn_named, turn_row
from memstory_reference.commands.memory_rows import row_table
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.commands.terminal_text import printable
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.systems.turns.memory_tools import turn_with_repeats
from memstory_reference.systems.turns.system import TurnsSystem

OF_OTHERS = ("user_id", "thread_id", "memory_mode", "toolset", "bus")


@asynccontextmanager
async def turns_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the conversation that was typed."""
    refuse_foreign(parsed, OF_OTHERS, "is not for the turns memory; it has --owner")
    settings, owner = chosen_turns(parsed), checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner)
    chat = WatchedChat(chat_of(settings, speech.part), speech.aside)
    async with open_turns_of(settings, chat) as system:
        status = await system.memory.status(owner)
        place = "Postgres" if settings.is_postgres else settings.store
        speech.aside(f"The memory of {printable(owner)} in {place}: {status['turns']} turns.")
        speech.aside(f"Answers come from: {system.chat.name}.")
        speech.aside("/help lists the commands, /quit ends.")
        yield TurnsConversation(speech=speech, system=system, owner=owner, session=random_id())


@dataclass(kw_only=True)
class TurnsConversation(Conversation):
    """One owner's conversation with the turns memory."""

    help = """\
/recall TEXT       what is remembered, best first
/forget ID|KEY     delete one turn and those that repeat it word for word
/status            how much is remembered, and of whom
/new               start a new session: the memory stays, the conversation so far is out of sight
/quit              end, as Ctrl-D does; Ctrl-C stops an answer"""

    system: TurnsSystem
    owner: str
    session: str

    async def turn(self, said: str) -> None:
        answer = await self.system.say(said, owner=self.owner, session=self.session)
        self.speech.answer(answer.answer)

    def commands(self) -> Mapping[str, Command]:
        return {"/recall": self._recall, "/forget": self._forget, "/status": self._status, "/new": self._new}

    async def _recall(self, text: str) -> None:
        if not text:
            raise InputError("/recall: say what to look for, such as '/recall where I live'")
        found = await self.system.memory.search(self.owner, text)
        self.speech.aside(
            row_table([turn_row(self.owner, one.turn) for one in found]) if found else "Nothing is found."
        )

    async def _forget(self, name: str) -> None:
        if not name:
            raise InputError("/forget: give an id as /recall shows it, or a key")
        memory = self.system.memory
        gone = await turn_with_repeats(memory, self.owner, turn_named(await memory.listed(self.owner), name).id)
        await memory.delete(self.owner, [one.id for one in gone])
        self.speech.aside("\n".join(f"Forgotten: {printable(one.text)}" for one in gone))

    async def _status(self, _: str) -> None:
        status = await self.system.memory.status(self.owner)
        speakers = ", ".join(map(printable, status["speakers"])) or "none"
        self.speech.aside(f"turns {status['turns']}, speakers {speakers}")

    async def _new(self, _: str) -> None:
        self.session = random_id()
        self.speech.aside("A new session.")
