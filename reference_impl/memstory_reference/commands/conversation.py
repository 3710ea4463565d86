"""A conversation at the terminal: what is typed goes to the memory's agent, what starts with a slash is a command."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from memstory.contract.texts import did_you_mean
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.errors import InputError

Command = Callable[[str], Awaitable[None]]


class ConversationEnd(Exception):  # noqa: N818  (not an error)
    """The conversation was ended by a command."""


@dataclass(kw_only=True)
class Conversation(ABC):
    """One owner's talk with a memory; errors of the memory or the model are the caller's to show."""

    help: ClassVar[str]
    speech: Speech

    @abstractmethod
    async def turn(self, said: str) -> None:
        """Take one turn and print the answer."""

    @abstractmethod
    def commands(self) -> Mapping[str, Command]:
        """Return the commands beside /help and /quit; each is given what was typed after its name."""

    async def hear(self, line: str) -> None:
        """Do what was typed; raise `ConversationEnd` if it was to end."""
        typed = line.strip()
        if typed.startswith("/"):
            name, _, argument = typed.partition(" ")
            await self._command(name)(argument.strip())
        elif typed:
            await self.turn(typed)

    def _command(self, name: str) -> Command:
        commands = {**self.commands(), "/help": self._help, "/quit": self._quit}
        if name not in commands:
            raise InputError(
                f"there is no command {name!r:.40}.{did_you_mean(name, commands)} There are: {', '.join(commands)}"
            )
        return commands[name]

    async def _help(self, _: str) -> None:
        self.speech.aside(self.help)

    async def _quit(self, _: str) -> None:
        raise ConversationEnd
