"""`memstory-reference chat --system layers`: whose memory it is, and what a conversation with it says first."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from memstory_reference.adapters.random_ids import random_id
from memstory_reference.commands.chat.layers_conversation import (
    LayersConversation,
)
from memstory_reference.commands.chat.speech import Speech
from memstory_reference.commands.chat.talk import Conversation
from memstory_reference.commands.chosen_settings import chosen_layers
from memstory_reference.commands.memory.layers_desk import status_line
from memstory_reference.commands.opened_layers import open_layers
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.commands.terminal_bus import caller_from_terminal
from memstory_reference.systems.layers.identity import checked_id
from memstory_reference.systems.layers.modes import MemoryMode, parse_mode
from memstory_reference.systems.layers.process import PART, START_BY, LayersTalk, LocalLayers, RemoteLayers

OF_TOPICS = ("owner", "toolset")
OF_THE_SERVER = ("store", "embedder", "settings", "chat", "memory_mode")


@asynccontextmanager
async def layers_conversation(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the conversation that was typed; at its end its session ends too, and what is open is closed."""
    refuse_foreign(parsed, OF_TOPICS, "belongs to the topics memory; layers have --user-id and --thread-id")
    user = checked_id(parsed.user_id, "user_id")
    thread = checked_id(parsed.thread_id, "thread_id") or random_id()
    opened = _remote(parsed, user, thread) if parsed.bus else _local(parsed, user, thread, speech)
    async with opened as (talk, place):
        await _greet(talk, place, user, thread, speech)
        conversation = LayersConversation(talk=talk, speech=speech)
        yield conversation
        await conversation.leave()


@asynccontextmanager
async def _local(
    parsed: argparse.Namespace, user: str | None, thread: str, speech: Speech
) -> AsyncIterator[tuple[LayersTalk, str]]:
    settings, mode = chosen_layers(parsed), parse_mode(parsed.memory_mode or MemoryMode.LOCAL)
    opened = await open_layers(settings, mode, speech.part)
    try:
        who = await opened.service.who(user, thread)
        place = settings.place if mode.is_durable else "this process alone"
        yield LocalLayers(service=opened.service, who=who), f"{place}; answers come from {opened.chat}"
    finally:
        await opened.service.close()


@asynccontextmanager
async def _remote(parsed: argparse.Namespace, user: str | None, thread: str) -> AsyncIterator[tuple[LayersTalk, str]]:
    refuse_foreign(parsed, OF_THE_SERVER, "is decided by the process that serves; leave it out with --bus")
    caller = caller_from_terminal(parsed.bus, PART, START_BY)
    yield RemoteLayers(caller=caller, user_id=user, thread_id=thread), "the processes on the bus"


async def _greet(talk: LayersTalk, place: str, user: str | None, thread: str, speech: Speech) -> None:
    status = await talk.status()
    speech.aside(f"The memory of {user or 'this thread'} in {place}.")
    speech.aside(f"{status_line(status)}.")
    if status["mode"] == MemoryMode.INCOGNITO:
        speech.aside("Nothing of this conversation is written; when it ends, all of it is forgotten.")
    elif user is None:
        speech.aside(f"--thread-id {thread} comes back to it; --user-id NAME gives every thread of NAME one memory.")
    speech.aside("/help lists the commands, /quit ends.")
