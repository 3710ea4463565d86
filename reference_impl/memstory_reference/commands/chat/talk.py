"""The loop of a conversation at the terminal, whatever it is with."""

from __future__ import annotations

import asyncio
from typing import Protocol

from memstory_reference.commands.chat.conversation import Ended
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.terminal import Terminal
from memstory_reference.errors import MemorySystemError

PROMPT = "you> "
A_TURN_FAILED = 1


class Hears(Protocol):
    """A conversation, line by line."""

    async def hear(self, line: str) -> None:
        """Do what was typed; raise `Ended` if it was to end."""
        ...


def talk(conversation: Hears, terminal: Terminal, speech: Speech, runner: asyncio.Runner) -> int:
    """Talk until the input ends; return the exit code: a script learns by it that a turn failed."""
    has_failed = False
    while True:
        try:
            line = terminal.ask(PROMPT)
            if line is None:
                break
            runner.run(conversation.hear(line))
        except Ended:
            break
        except MemorySystemError as error:
            speech.aside(f"! {error}")
            has_failed = True
        except KeyboardInterrupt:
            if not terminal.is_interactive:
                raise
            speech.aside("\n(stopped; Ctrl-D ends the conversation)")
    return A_TURN_FAILED if has_failed and not terminal.is_interactive else 0
