"""A conversation at the terminal: what is typed goes to the agent, what starts with a slash to the memory itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Protocol

from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.memory_rows import Row, name_of, row_of, table
from memstory_reference.commands.opened_memory import KeptMemory, entry_named
from memstory_reference.errors import InputError
from memstory_reference.ports import NewId
from memstory_reference.systems.topics.engrams import FoundEngram
from memstory_reference.tooling.agent import Answer

HELP = """\
/topics [PREFIX]   what is remembered by name
/search TEXT       what is remembered of earlier conversations, by meaning
/forget TOPIC|ID   delete one memory
/new               start a new session: the memory stays, the conversation so far is out of sight
/quit              end, as Ctrl-D does; Ctrl-C stops an answer"""


class Ended(Exception):  # noqa: N818  (a conversation that ends is no error)
    """The conversation was ended by a command."""


class SearchedMemory(KeptMemory, Protocol):
    """What people ask of the memory itself."""

    async def search_episodic(self, owner: str, query: str) -> list[FoundEngram]:
        """Return engrams by meaning, best first."""
        ...

    async def forget(self, owner: str, entry_id: str) -> bool:
        """Delete an entry; False if unknown."""
        ...


class TopicsTalk(Protocol):
    """The topics system, in this process or in others."""

    @property
    def service(self) -> SearchedMemory:
        """The memory itself."""
        ...

    async def say(self, text: str, *, owner: str, session_id: str) -> Answer:
        """Take one turn."""
        ...

    async def settle(self) -> None:
        """Return when what was said is remembered."""
        ...


@dataclass(kw_only=True)
class Conversation:
    """One owner's talk with the topics system; errors of the memory or the model are the caller's to show."""

    system: TopicsTalk
    speech: Speech
    owner: str
    new_id: NewId
    _session: str = field(init=False)

    def __post_init__(self) -> None:
        self._session = self.new_id()

    async def hear(self, line: str) -> None:
        """Do what was typed; raise `Ended` if it was to end."""
        typed = line.strip()
        if typed.startswith("/"):
            name, _, argument = typed.partition(" ")
            await self._command(name)(argument.strip())
        elif typed:
            answer = await self.system.say(typed, owner=self.owner, session_id=self._session)
            self.speech.answer(answer.answer)
            for note in answer.notes:
                self.speech.aside(f"! {note}")
            # While the next line is awaited nothing runs: the turn is remembered before.
            await self.system.settle()

    def _command(self, name: str) -> Callable[[str], Awaitable[None]]:
        commands = {
            "/topics": self._topics,
            "/search": self._search,
            "/forget": self._forget,
            "/new": self._new,
            "/help": self._help,
            "/quit": self._quit,
        }
        if name not in commands:
            near = get_close_matches(name, commands, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise InputError(f"there is no command {name!r:.40}.{hint} There are: {', '.join(commands)}")
        return commands[name]

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
        await self.system.service.forget(self.owner, entry.id)
        self.speech.aside(
            f"Forgotten: {name_of(row_of(self.owner, entry))}. This session may still mention it; /new starts another."
        )

    async def _new(self, _: str) -> None:
        self._session = self.new_id()
        self.speech.aside("A new session.")

    async def _help(self, _: str) -> None:
        self.speech.aside(HELP)

    async def _quit(self, _: str) -> None:
        raise Ended

    def _show(self, rows: list[Row], for_none: str) -> None:
        self.speech.aside(table(rows) if rows else for_none)
