"""`memstory-reference chat`: a conversation with the topics memory at the terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from memstory_reference import bootstrap
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chosen_settings import add_store_options, chosen_settings
from memstory_reference.commands.conversation import Conversation, Ended
from memstory_reference.commands.speech import Speech
from memstory_reference.commands.terminal import Terminal
from memstory_reference.commands.watched_chat import WatchedChat
from memstory_reference.errors import MemorySystemError
from memstory_reference.settings import TopicsSettings
from memstory_reference.systems.topics.inputs import check_owner
from memstory_reference.topics_system import TopicsPorts, TopicsSystem

PROMPT = "you> "
A_TURN_FAILED = 1


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    text = "talk with a memory that stays: it is there again in the next conversation"
    parser = subparsers.add_parser("chat", help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_store_options(parser)
    parser.add_argument("--owner", metavar="NAME", default="me", help="whose memory it is (default: %(default)s)")
    parser.add_argument("--chat", metavar="MODEL", help="offline (the default), ollama:NAME, replay:FILE")
    parser.add_argument("--toolset", choices=("single", "dual"), help="four tools of one purpose, or two")
    parser.set_defaults(run=chat)


def chat(parsed: argparse.Namespace) -> int:
    """Talk until the input ends; a script learns by the exit code that a turn failed."""
    settings = chosen_settings(parsed)
    owner = check_owner(parsed.owner)
    terminal = Terminal(sys.stdin, sys.stdout)
    speech = Speech(terminal)
    with asyncio.Runner() as runner:
        system = runner.run(_open(settings, speech))
        try:
            runner.run(_greet(system, settings, owner, speech))
            conversation = Conversation(system=system, speech=speech, owner=owner, new_id=random_id)
            has_failed = _talk(conversation, terminal, speech, runner)
        finally:
            runner.run(system.close())
    return A_TURN_FAILED if has_failed and not terminal.is_interactive else 0


def _talk(conversation: Conversation, terminal: Terminal, speech: Speech, runner: asyncio.Runner) -> bool:
    """Return whether anything that was typed failed."""
    has_failed = False
    while True:
        try:
            line = terminal.ask(PROMPT)
            if line is None:
                return has_failed
            runner.run(conversation.hear(line))
        except Ended:
            return has_failed
        except MemorySystemError as error:
            speech.aside(f"! {error}")
            has_failed = True
        except KeyboardInterrupt:
            if not terminal.is_interactive:
                raise
            speech.aside("\n(stopped; Ctrl-D ends the conversation)")


async def _open(settings: TopicsSettings, speech: Speech) -> TopicsSystem:
    embedder = bootstrap.make_embedder(settings.embedding_model, ollama_host=settings.ollama_host)
    model = bootstrap.make_chat(settings.chat, embedder, ollama_host=settings.ollama_host, on_text=speech.part)
    store = await bootstrap.open_store(Path(settings.chroma_path), embedder, server=settings.chroma_server)
    ports = TopicsPorts(
        clock=SystemClock(),
        embedder=embedder,
        store=store,
        chat=WatchedChat(model, speech.aside),
        new_id=random_id,
    )
    system = bootstrap.topics(settings, ports)
    try:
        await system.open()
    except BaseException:
        await system.close()
        raise
    return system


async def _greet(system: TopicsSystem, settings: TopicsSettings, owner: str, speech: Speech) -> None:
    status = await system.status(owner)
    place = settings.chroma_server or settings.chroma_path
    speech.aside(f"The memory of {owner} in {place}: topics {status['topics']}, engrams {status['episodic']}.")
    speech.aside(f"Answers come from: {status['chat']}.")
    if "stand-in" in status["chat"]:
        speech.aside("It follows written rules; no language model is behind it. Choose one with --chat ollama:NAME.")
    speech.aside("/help lists the commands, /quit ends.")
