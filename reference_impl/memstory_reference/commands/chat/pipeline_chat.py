"""`memstory-reference chat --system pipeline`: a conversation with the pipeline memory, in this process."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Command, Conversation
from memstory_reference.commands.chat.watched_chat import WatchedChat
from memstory_reference.commands.memory.opened_pipeline import (
    FOREIGN,
    chosen_pipeline,
    chunk_named,
    row_of_chunk,
)
from memstory_reference.commands.memory_rows import Row, row_table
from memstory_reference.commands.options import DEFAULT_OWNER, refuse_foreign
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.pipeline import open_pipeline_system
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.systems.pipeline.memory_tools import forget_with_repeats
from memstory_reference.systems.pipeline.system import PipelineSystem


@asynccontextmanager
async def pipeline_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the conversation that was typed; at its end what is open is closed."""
    refuse_foreign(parsed, FOREIGN, "belongs to another memory; the pipeline has --owner, and talks in this process")
    owner, settings = checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner), chosen_pipeline(parsed)
    model = WatchedChat(chat_of(settings, speech.part), speech.aside)
    system = await open_pipeline_system(settings, embedder=embedder_of(settings), chat=model)
    try:
        counts = await system.memory.status(owner)
        kinds = ", ".join(f"{kind} {counts[kind]}" for kind in ("procedural", "semantic", "episodic", "working"))
        speech.aside(f"The memory of {owner} in {settings.folder}: {kinds}.")
        speech.aside(f"Answers come from: {model.name}.")
        speech.aside("/help lists the commands, /quit ends.")
        yield PipelineConversation(system=system, speech=speech, owner=owner)
    finally:
        await system.close()


@dataclass(kw_only=True)
class PipelineConversation(Conversation):
    """One owner's talk with the pipeline memory."""

    help = """\
/memories [KIND]   what is remembered: procedural, semantic, episodic or working
/search TEXT       what is remembered, by meaning
/forget KEY|ID     delete a memory, what it had replaced, and what says the same
/new               start a new session: the memory stays, the conversation so far is out of sight
/quit              end, as Ctrl-D does; Ctrl-C stops an answer"""

    system: PipelineSystem
    owner: str
    _session: str = field(default_factory=random_id)

    async def turn(self, said: str) -> None:
        spoken = await self.system.say(said, owner=self.owner, session=self._session)
        self.speech.answer(spoken.answer)
        for note in spoken.notes:
            self.speech.aside(f"! {note}")

    def commands(self) -> Mapping[str, Command]:
        return {"/memories": self._memories, "/search": self._search, "/forget": self._forget, "/new": self._new}

    async def _memories(self, kind: str) -> None:
        found = await self.system.memory.memories(self.owner, [kind] if kind else None)
        self._show([row_of_chunk(one) for one in found])

    async def _search(self, text: str) -> None:
        if not text:
            raise InputError("/search: say what to look for, such as '/search where I live'")
        result = await self.system.memory.recall(text, self.owner, by_score=True)
        self._show([{**row_of_chunk(one.memory), "score": one.score or 0.0} for one in result.memories])

    async def _forget(self, name: str) -> None:
        if not name:
            raise InputError("/forget: name a key or an id, as /memories shows them")
        meant = await chunk_named(self.system.memory, self.owner, name)
        gone = await forget_with_repeats(self.system.memory, self.owner, meant.id)
        self.system.forget_windows(self.owner)
        self.speech.aside("\n".join(f"Forgotten: {one.content}" for one in gone))

    async def _new(self, _: str) -> None:
        self._session = random_id()
        self.speech.aside("A new session.")

    def _show(self, rows: Sequence[Row]) -> None:
        self.speech.aside(row_table(rows) if rows else "No memories found.")
