"""`memstory-reference chat --system topics`: a conversation with the topics memory, in this process or over a bus."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from memstory.contract.values import Tree
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Command, Conversation
from memstory_reference.commands.chat.watched_chat import WatchedChat, show_calls
from memstory_reference.commands.chosen_settings import chosen_settings
from memstory_reference.commands.memory_rows import Row, row_name, row_of, row_table
from memstory_reference.commands.opened_memory import entry_named
from memstory_reference.commands.options import DEFAULT_OWNER, refuse_foreign
from memstory_reference.commands.terminal_bus import caller_from_terminal
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.topics import open_topics
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.systems.topics.anywhere import TopicsAnywhere
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.processes.agent_process import PART as AGENT
from memstory_reference.systems.topics.processes.agent_process import START_BY as START_AGENT_BY
from memstory_reference.systems.topics.processes.agent_process import RemoteTopics
from memstory_reference.systems.topics.processes.memory_process import PART as MEMORY
from memstory_reference.systems.topics.processes.memory_process import START_BY as START_MEMORY_BY
from memstory_reference.systems.topics.toolset.result_texts import past_turns
from memstory_reference.tooling.agent import Answer

OF_LAYERS = ("user_id", "thread_id", "memory_mode")
OF_THE_SERVERS = ("store", "embedder", "settings", "chat", "toolset")


class TopicsTalk(Protocol):
    """The topics system, in this process or in others."""

    @property
    def service(self) -> TopicsAnywhere:
        """The memory itself."""
        ...

    async def say(self, text: str, *, owner: str, session_id: str) -> Answer:
        """Take one turn."""
        ...

    async def settle(self) -> None:
        """Return when what was said is remembered."""
        ...

    async def forget(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        """Delete an entry and every engram that holds what it says."""
        ...


@asynccontextmanager
async def topics_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the conversation that was typed; at its end what is open is closed."""
    refuse_foreign(parsed, OF_LAYERS, "belongs to --system layers; the topics memory has --owner")
    owner = checked_owner(DEFAULT_OWNER if parsed.owner is None else parsed.owner)
    if parsed.bus:
        refuse_foreign(parsed, OF_THE_SERVERS, "is decided by the processes that serve; leave it out with --bus")
        remote = RemoteTopics(
            agent=caller_from_terminal(parsed.bus, AGENT, START_AGENT_BY),
            memory=caller_from_terminal(parsed.bus, MEMORY, START_MEMORY_BY),
            show_calls=lambda outcomes: show_calls(outcomes, speech.aside),
        )
        _greet(await remote.status(owner), "the processes on the bus", owner, speech)
        yield TopicsConversation(system=remote, speech=speech, owner=owner)
        return
    settings = chosen_settings(parsed)
    embedder = embedder_of(settings)
    model = WatchedChat(chat_of(settings, speech.part), speech.aside)
    system = await open_topics(settings, embedder=embedder, chat=model)
    try:
        _greet(await system.status(owner), settings.chroma_server or settings.chroma_path, owner, speech)
        yield TopicsConversation(system=system, speech=speech, owner=owner)
    finally:
        await system.close()


@dataclass(kw_only=True)
class TopicsConversation(Conversation):
    """One owner's talk with the topics system."""

    help = """\
/topics [PREFIX]   what is remembered by name
/search TEXT       what is remembered of earlier conversations, by meaning
/forget TOPIC|ID   delete a memory and every past turn that says it
/good, /bad        rate the last answer; better ones are found first
/new               start a new session: the memory stays, the conversation so far is out of sight
/quit              end, as Ctrl-D does; Ctrl-C stops an answer"""

    system: TopicsTalk
    owner: str
    _session: str = field(default_factory=random_id)
    _answered: str = ""

    async def turn(self, said: str) -> None:
        answer = await self.system.say(said, owner=self.owner, session_id=self._session)
        self.speech.answer(answer.answer)
        for note in answer.notes:
            self.speech.aside(f"! {note}")
        # While the next line is awaited nothing runs: the turn is remembered before.
        await self.system.settle()
        self._answered = answer.query_id

    def commands(self) -> Mapping[str, Command]:
        return {
            "/topics": self._topics,
            "/search": self._search,
            "/forget": self._forget,
            "/good": lambda _: self._rate(1),
            "/bad": lambda _: self._rate(-1),
            "/new": self._new,
        }

    async def _topics(self, prefix: str) -> None:
        topics = await self.system.service.list_topics(self.owner, prefix)
        self._show([row_of(self.owner, topic) for topic in topics], "No topics.")

    async def _search(self, text: str) -> None:
        if not text:
            raise InputError("/search: say what to look for, such as '/search where I live'")
        found = await self.system.service.search_episodic(self.owner, text)
        self._show([row_of(self.owner, engram) for engram in found], "No memories found.")

    async def _forget(self, name: str) -> None:
        if not name:
            raise InputError("/forget: name a topic, or an id as /search shows it")
        entry = await entry_named(self.system.service, self.owner, name)
        found = await self.system.forget(self.owner, entry.id)
        names = [row_name(row_of(self.owner, one)) for one in (entry, *(found.topics if found else ()))]
        self.speech.aside(f"Forgotten: {', '.join(names)}{_and_more(found)}.")
        if found and found.mentions:
            self.speech.aside("These mention it too; /forget with an id forgets one:")
            self._show([row_of(self.owner, one) for one in found.mentions], "")

    async def _rate(self, value: float) -> None:
        if not self._answered:
            raise InputError("/good and /bad rate an answer; there is none yet")
        is_kept = await self.system.service.rate_turn(self.owner, self._answered, value)
        self.speech.aside("Rated." if is_kept else "That turn is not remembered, so there is nothing to rate.")

    async def _new(self, _: str) -> None:
        self._session = random_id()
        self.speech.aside("A new session.")

    def _show(self, rows: list[Row], for_none: str) -> None:
        self.speech.aside(row_table(rows) if rows else for_none)


def _and_more(found: ForgottenEntry | None) -> str:
    number = len(found.engrams) if found else 0
    return f", and {past_turns(number)} that said it" if number else ""


def _greet(status: Mapping[str, Tree], place: str, owner: str, speech: Speech) -> None:
    if "topics" in status:
        counts = f"topics {status['topics']}, engrams {status['episodic']}"
        speech.aside(f"The memory of {owner} in {place}: {counts}.")
    else:
        speech.aside(f"! no process serves {MEMORY}. Start one: {START_MEMORY_BY}")
    model = status.get("chat", "")
    speech.aside(f"Answers come from: {model}." if model else f"! no process serves {AGENT}: {START_AGENT_BY}")
    if "stand-in" in model:
        speech.aside("It follows written rules; no language model is behind it. Choose one with --chat ollama:NAME.")
    speech.aside("/help lists the commands, /quit ends.")
