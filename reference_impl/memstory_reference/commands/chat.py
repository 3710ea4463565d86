"""`memstory-reference chat`: a conversation with a memory at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack

from memstory.contract.errors import MemstoryError
from memstory_reference.commands.chat.layers_chat import layers_conversation
from memstory_reference.commands.chat.manager_chat import manager_conversation
from memstory_reference.commands.chat.pipeline_chat import pipeline_conversation
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Conversation, ConversationEnd
from memstory_reference.commands.chat.topics_chat import topics_conversation
from memstory_reference.commands.chat.turns_chat import turns_conversation
from memstory_reference.commands.options import LAYERS, MANAGER, PIPELINE, TOPICS, TURNS
from memstory_reference.commands.terminal import Terminal

PROMPT = "you> "
A_TURN_FAILED = 1

Opening = Callable[[argparse.Namespace, Speech], AbstractAsyncContextManager[Conversation]]
CONVERSATIONS: Mapping[str, Opening] = {
    TOPICS: topics_conversation,
    LAYERS: layers_conversation,
    MANAGER: manager_conversation,
    PIPELINE: pipeline_conversation,
    TURNS: turns_conversation,
}


def run(parsed: argparse.Namespace) -> int:
    """Talk until the input ends; a script learns by the exit code that a turn failed."""
    terminal = Terminal(sys.stdin, sys.stdout)
    speech = Speech(terminal)
    with asyncio.Runner() as runner, ExitStack() as closing:
        opening = CONVERSATIONS[parsed.system](parsed, speech)
        conversation = runner.run(opening.__aenter__())
        closing.push(lambda *failure: runner.run(opening.__aexit__(*failure)))
        return talk(conversation, terminal, speech, runner)


def talk(conversation: Conversation, terminal: Terminal, speech: Speech, runner: asyncio.Runner) -> int:
    """Talk until the input ends; return the exit code."""
    has_failed = False
    while True:
        try:
            line = terminal.ask(PROMPT)
            if line is None:
                break
            runner.run(conversation.hear(line))
        except ConversationEnd:
            break
        except MemstoryError as error:
            speech.aside(f"! {error}")
            has_failed = True
        except KeyboardInterrupt:
            if not terminal.is_interactive:
                raise
            speech.aside("\n(stopped; Ctrl-D ends the conversation)")
    return A_TURN_FAILED if has_failed and not terminal.is_interactive else 0
