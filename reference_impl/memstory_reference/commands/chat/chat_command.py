"""`memstory-reference chat`: a conversation with a memory at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.bus_option import add_bus_option, caller_from_terminal
from memstory_reference.commands.chat.conversation import Conversation
from memstory_reference.commands.chat.layers_chat import layers_conversation
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Hears, talk
from memstory_reference.commands.chat.watched_chat import WatchedChat, show_calls
from memstory_reference.commands.chosen_settings import add_store_options, chosen_settings
from memstory_reference.commands.layers_options import (
    LAYERS,
    add_mode_option,
    add_person_options,
    add_system_option,
    refuse_foreign,
)
from memstory_reference.commands.terminal import Terminal
from memstory_reference.composition.chat_models import chat_of
from memstory_reference.composition.embedders import embedder_of
from memstory_reference.composition.topics import open_topics
from memstory_reference.ports import Json
from memstory_reference.systems.topics.inputs import check_owner
from memstory_reference.systems.topics.processes.agent_process import PART as AGENT
from memstory_reference.systems.topics.processes.agent_process import START_BY as START_AGENT_BY
from memstory_reference.systems.topics.processes.agent_process import RemoteTopics
from memstory_reference.systems.topics.processes.memory_process import PART as MEMORY
from memstory_reference.systems.topics.processes.memory_process import START_BY as START_MEMORY_BY

DEFAULT_OWNER = "me"
OF_LAYERS = ("user_id", "thread_id", "memory_mode")
OF_THE_SERVERS = ("store", "embedder", "settings", "chat", "toolset")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "talk with a memory that stays: it is there again in the next conversation"
    parser = subparsers.add_parser("chat", help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_system_option(parser)
    add_store_options(parser)
    parser.add_argument("--owner", metavar="NAME", help=f"topics: whose memory it is (default: {DEFAULT_OWNER})")
    add_person_options(parser)
    add_mode_option(parser)
    parser.add_argument("--chat", metavar="MODEL", help="offline (the default), ollama:NAME, replay:FILE")
    parser.add_argument("--toolset", choices=("single", "dual"), help="topics: four tools of one purpose, or two")
    add_bus_option(parser, by_default=False)
    parser.set_defaults(run=chat)


def chat(parsed: argparse.Namespace) -> int:
    """Talk until the input ends; a script learns by the exit code that a turn failed."""
    terminal = Terminal(sys.stdin, sys.stdout)
    speech = Speech(terminal)
    with asyncio.Runner() as runner, ExitStack() as closing:
        opening: AbstractAsyncContextManager[Hears] = (
            layers_conversation(parsed, speech) if parsed.system == LAYERS else _topics_conversation(parsed, speech)
        )
        conversation = runner.run(opening.__aenter__())
        closing.push(lambda *failure: runner.run(opening.__aexit__(*failure)))
        return talk(conversation, terminal, speech, runner)


@asynccontextmanager
async def _topics_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    refuse_foreign(parsed, OF_LAYERS, "belongs to --system layers; the topics memory has --owner")
    owner = check_owner(parsed.owner or DEFAULT_OWNER)
    if parsed.bus:
        yield await _remote(parsed, owner, speech)
        return
    settings = chosen_settings(parsed)
    embedder = embedder_of(settings)
    model = WatchedChat(chat_of(settings, embedder, speech.part), speech.aside)
    system = await open_topics(settings, embedder=embedder, chat=model)
    try:
        _greet(await system.status(owner), settings.chroma_server or settings.chroma_path, owner, speech)
        yield Conversation(system=system, speech=speech, owner=owner, new_id=random_id)
    finally:
        await system.close()


async def _remote(parsed: argparse.Namespace, owner: str, speech: Speech) -> Conversation:
    refuse_foreign(parsed, OF_THE_SERVERS, "is decided by the processes that serve; leave it out with --bus")
    system = RemoteTopics(
        agent=caller_from_terminal(parsed.bus, AGENT, START_AGENT_BY),
        memory=caller_from_terminal(parsed.bus, MEMORY, START_MEMORY_BY),
        show_calls=lambda outcomes: show_calls(outcomes, speech.aside),
    )
    _greet(await system.status(owner), "the processes on the bus", owner, speech)
    return Conversation(system=system, speech=speech, owner=owner, new_id=random_id)


def _greet(status: Mapping[str, Json], place: str, owner: str, speech: Speech) -> None:
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
