"""`memstory-reference chat`: a conversation with a memory at the terminal, in this process or over a bus."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from memstory.contract.errors import MemstoryError
from memstory.contract.models import ChatModel, ChatRequest, Reply, ToolRequest
from memstory.contract.target import Scope
from memstory.contract.values import ToolCall, Tree
from memstory.models.shim import Agent
from memstory.models.shim_tools import TOOLSETS, MemoryTools, usual_toolset
from memstory_reference.adapters.random_ids import random_id
from memstory_reference.bus.calls import Caller
from memstory_reference.commands.conversation import Conversation, ConversationEnd, Say
from memstory_reference.commands.desk import chosen_settings
from memstory_reference.commands.options import refuse_foreign
from memstory_reference.commands.terminal import Speech, Terminal, cell, json_text
from memstory_reference.composition.declaration import Models
from memstory_reference.composition.extras import open_bus
from memstory_reference.composition.systems import system_named
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.ports import STAND_IN, Envelope
from memstory_reference.system_memory import SystemMemory
from memstory_reference.systems.layers import process as layers
from memstory_reference.systems.topics import process as topics

PROMPT = "you> "
SHOWN_CHARACTERS = 160
A_TURN_FAILED = 1
OF_THE_SERVERS = ("store", "embedder", "settings", "chat", "toolset", "memory_mode")

Show = Callable[[str], None]


def run(parsed: argparse.Namespace) -> int:
    """Talk until the input ends; a script learns by the exit code that a turn failed."""
    terminal = Terminal(sys.stdin, sys.stdout)
    speech = Speech(terminal)
    with asyncio.Runner() as runner, ExitStack() as closing:
        opening = _remote(parsed, speech) if parsed.bus else _local(parsed, speech)
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


@asynccontextmanager
async def _local(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Open the memory that was typed; at the end its session ends too, and what is open is closed."""
    system, settings = chosen_settings(parsed)
    scope = _scope(parsed)
    made: list[ChatModel] = []

    def watched(model: ChatModel) -> ChatModel:
        made.append(WatchedChat(model, speech.aside))
        return made[-1]

    models = Models(around_chat=watched, on_text=speech.part)
    memory = await system.open(settings, models)
    try:
        status = memory.status_line(await memory.inspect("status", {}, scope))
        place = "this process alone" if memory.is_forgetful else system.place_of(settings)
        speech.aside(f"The memory of {_name(scope)} in {place}: {status}.")
        talks, model = "chat" in memory.operations, made[-1].name
        say = memory.say if talks else _say_by_tools(memory, models.chat_of(settings))
        _greet(memory, scope, speech, system.talker(model) if talks else model)
        conversation = Conversation(memory=memory, say=say, speech=speech, scope=scope)
        yield conversation
        await conversation.leave()
    finally:
        await memory.close()


@asynccontextmanager
async def _remote(parsed: argparse.Namespace, speech: Speech) -> AsyncIterator[Conversation]:
    """Meet the processes that serve the memory that was typed."""
    if parsed.system not in REMOTE:
        raise InputError(f"--bus is for {' and '.join(REMOTE)}; the {parsed.system} memory talks in this process")
    refuse_foreign(parsed, OF_THE_SERVERS, "is decided by the processes that serve; leave it out with --bus")
    remote = REMOTE[parsed.system]
    scope = _scope(parsed)
    memory = remote.connect(parsed.bus, speech.aside)
    status = await memory.inspect("status", {}, scope)
    speech.aside(f"The memory of {_name(scope)} in the processes on the bus: {memory.status_line(status)}.")
    for missing in remote.missing(status):
        speech.aside(f"! {missing}")
    speech.aside("/help lists the commands, /quit ends.")
    conversation = Conversation(memory=memory, say=memory.say, speech=speech, scope=scope)
    yield conversation
    await conversation.leave()


def _scope(parsed: argparse.Namespace) -> Scope:
    """Return for whom and in which session one talks."""
    owner = system_named(parsed.system).owner if parsed.owner is None else checked_owner(parsed.owner)
    return Scope(user=owner, session=parsed.thread_id or random_id())


def _name(scope: Scope) -> str:
    return scope.user or "this thread"


def _say_by_tools(memory: SystemMemory, model: ChatModel) -> Say:
    """Return the talk of an agent that saves and searches by tools, for a memory that has no agent of its own."""
    able = memory.capabilities()
    return Agent(model, MemoryTools(target=memory, able=able, schemas=TOOLSETS[usual_toolset(able)])).say


def _greet(memory: SystemMemory, scope: Scope, speech: Speech, model: str) -> None:
    speech.aside(f"Answers come from: {model}.")
    if STAND_IN in model:
        speech.aside("It follows written rules; no language model is behind it. Choose one with --chat ollama:NAME.")
    if memory.is_forgetful:
        speech.aside("Nothing of this conversation is written; when it ends, all of it is forgotten.")
    elif not scope.user:
        speech.aside(
            f"--thread-id {scope.session} comes back to it; --owner NAME gives every thread of NAME one memory."
        )
    speech.aside("/help lists the commands, /quit ends.")


class WatchedChat:
    """Tells `show` what `inner` asks of tools, as it asks, and what they answered, before it reads that."""

    def __init__(self, inner: ChatModel, show: Callable[[str], None]) -> None:
        self.name = inner.name
        self._inner = inner
        self._show = show

    async def chat(self, request: ChatRequest) -> Reply:
        answered = list(takewhile(lambda message: message.role == "tool", reversed(request.messages)))
        for message in reversed(answered):
            self._show(answer_line(message.content))
        reply = await self._inner.chat(request)
        for called in reply.tool_requests:
            self._show(call_line(called))
        return reply


def show_calls(outcomes: Sequence[ToolCall], show: Callable[[str], None]) -> None:
    """Tell `show` what another process has asked of tools, and what they answered."""
    for outcome in outcomes:
        show(call_line(ToolRequest(name=outcome.name, arguments=outcome.args)))
        show(answer_line(outcome.text))


def call_line(request: ToolRequest) -> str:
    """Return the line that shows a call."""
    return f"  → {cell(call_text(request), SHOWN_CHARACTERS)}"


def answer_line(text: str) -> str:
    """Return the line that shows what a tool answered."""
    return f"  ← {cell(text, SHOWN_CHARACTERS)}"


def call_text(request: ToolRequest) -> str:
    """Return a call as it is written in a program.

    >>> call_text(ToolRequest(name="save_topic", arguments={"topic": "user.name", "content": "Ana"}))
    'save_topic(topic="user.name", content="Ana")'
    """
    arguments = ", ".join(f"{name}={json_text(value)}" for name, value in request.arguments.items())
    return f"{request.name}({arguments})"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSystem:
    """`connect` takes the bus's address and who shows tool calls; `missing` says of a status which parts do not run."""

    connect: Callable[[str, Show], SystemMemory]
    missing: Callable[[Mapping[str, Tree]], Sequence[str]] = lambda _: ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefBus:
    """A connection for each request: between two typed lines nothing runs that could answer the server's pings."""

    address: str
    name: str

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Publish and return the reply, as a bus does."""
        async with open_bus(self.address, self.name) as bus:
            return await bus.request(envelope, reply_subject, timeout_seconds=timeout_seconds)


def _caller(address: str, part: str, start_by: str) -> Caller:
    """Return who calls a part for a person at the terminal."""
    bus = BriefBus(address=address, name="chat")
    return Caller(bus=bus, part=part, new_id=random_id, name="chat", start_by=start_by)


def _topics(address: str, show: Show) -> SystemMemory:
    return topics.RemoteTopicsMemory(
        agent=_caller(address, topics.AGENT, topics.START_AGENT),
        memory=_caller(address, topics.MEMORY, topics.START_MEMORY),
        show_calls=lambda outcomes: show_calls(outcomes, show),
    )


def _missing_topics(status: Mapping[str, Tree]) -> list[str]:
    parts = {"topics": (topics.MEMORY, topics.START_MEMORY), "chat": (topics.AGENT, topics.START_AGENT)}
    return [f"no process serves {part}. Start one: {how}" for name, (part, how) in parts.items() if name not in status]


def _layers(address: str, _: Show) -> SystemMemory:
    return layers.RemoteLayersMemory(_caller(address, layers.PART, layers.START_BY))


REMOTE: Final[Mapping[str, RemoteSystem]] = {
    "topics": RemoteSystem(connect=_topics, missing=_missing_topics),
    "layers": RemoteSystem(connect=_layers),
}
