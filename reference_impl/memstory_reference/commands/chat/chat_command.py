"""`memstory-reference chat`: a conversation with a memory at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack

from memstory_reference.commands.bus_option import add_bus_option
from memstory_reference.commands.chat.layers_chat import layers_conversation
from memstory_reference.commands.chat.manager_chat import manager_conversation
from memstory_reference.commands.chat.pipeline_chat import pipeline_conversation
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Conversation, Ended
from memstory_reference.commands.chat.topics_chat import DEFAULT_OWNER, topics_conversation
from memstory_reference.commands.chat.turns_chat import turns_conversation
from memstory_reference.commands.chosen_settings import add_store_options
from memstory_reference.commands.layers_options import (
    LAYERS,
    MANAGER,
    PIPELINE,
    TOPICS,
    TURNS,
    add_mode_option,
    add_person_options,
    add_system_option,
)
from memstory_reference.commands.terminal import Terminal
from memstory_reference.errors import MemorySystemError

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


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "talk with a memory that stays: it is there again in the next conversation"
    parser = subparsers.add_parser("chat", help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_system_option(parser)
    add_store_options(parser)
    parser.add_argument(
        "--owner",
        metavar="NAME",
        help=f"topics, pipeline and turns: whose memory it is (default: {DEFAULT_OWNER}); manager: likewise (default)",
    )
    add_person_options(parser)
    add_mode_option(parser)
    parser.add_argument(
        "--chat",
        metavar="MODEL",
        help="offline (the default), ollama:NAME, openai:NAME (see OPENAI_BASE_URL), replay:FILE",
    )
    parser.add_argument("--toolset", choices=("single", "dual"), help="topics: four tools of one purpose, or two")
    add_bus_option(parser, by_default=False)
    parser.set_defaults(run=chat)


def chat(parsed: argparse.Namespace) -> int:
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
