"""`memstory-reference chat`: a conversation with a memory at the terminal, in this process or over a bus.

A line is a turn, a line with a slash is about the memory.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

from memstory.contract.errors import MemstoryError
from memstory.contract.models import ChatModel, ChatRequest, Reply
from memstory.contract.target import Query, Scope, Turn
from memstory.contract.texts import did_you_mean
from memstory.contract.values import ToolCall, Tree
from memstory.models.shim import Agent
from memstory.models.shim_tools import TOOLSETS, MemoryTools, usual_toolset
from memstory_reference.adapters.machine import random_id
from memstory_reference.bus.calls import Caller, start_command
from memstory_reference.commands.memory import (
    Row,
    chosen_settings,
    forget_meant,
    is_named,
    job_arguments,
    row_name,
    row_table,
    rows_of,
)
from memstory_reference.commands.terminal import Terminal, cell, json_text
from memstory_reference.composition.declaration import ports_of
from memstory_reference.composition.extras import open_bus
from memstory_reference.composition.systems import SYSTEMS, system_named
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.ports import STAND_IN, Envelope
from memstory_reference.system_memory import SystemMemory

PROMPT = "you> "
SHOWN_CHARACTERS = 160
A_TURN_FAILED = 1
SHUTDOWN, EXPLICIT = "shutdown", "explicit"
OF_THE_SERVERS = ("store", "embedder", "settings", "chat", "toolset", "memory_mode")

Show = Callable[[str], None]
Say = Callable[[str, Scope], Awaitable[Turn]]
"""Takes a turn."""


def run(parsed: argparse.Namespace) -> int:
    """Talk until the input ends; a script learns by the exit code that a turn failed."""
    terminal = Terminal(sys.stdin, sys.stdout)
    with asyncio.Runner() as runner, ExitStack() as closing:
        opening = _remote(parsed, terminal) if parsed.bus else _local(parsed, terminal)
        conversation = runner.run(opening.__aenter__())
        closing.push(lambda *failure: runner.run(opening.__aexit__(*failure)))
        return talk(conversation, runner)


def talk(conversation: Conversation, runner: asyncio.Runner) -> int:
    """Talk until the input ends; return the exit code."""
    terminal, has_failed = conversation.terminal, False
    while True:
        try:
            line = terminal.ask(PROMPT)
            if line is None:
                break
            runner.run(conversation.hear(line))
        except ConversationEnd:
            break
        except MemstoryError as error:
            terminal.aside(f"! {error}")
            has_failed = True
        except KeyboardInterrupt:
            if not terminal.is_interactive:
                raise
            terminal.aside("\n(stopped; Ctrl-D ends the conversation)")
    return A_TURN_FAILED if has_failed and not terminal.is_interactive else 0


@asynccontextmanager
async def _local(parsed: argparse.Namespace, terminal: Terminal) -> AsyncIterator[Conversation]:
    """Open the memory that was typed; at the end its session ends too, and what is open is closed."""
    system, settings = chosen_settings(parsed)
    scope = _scope(parsed)
    ports = ports_of(settings, terminal.part)
    chat = WatchedChat(ports.chat, terminal.aside)
    memory = await system.open(settings, replace(ports, chat=chat))
    try:
        status = memory.status_line(await memory.inspect("status", {}, scope))
        place = "this process alone" if memory.is_forgetful else system.place_of(settings)
        terminal.aside(f"The memory of {_name(scope)} in {place}: {status}.")
        talks = "chat" in memory.operations
        say = memory.say if talks else _say_by_tools(memory, chat)
        _greet(memory, scope, terminal, system.talker(chat.name) if talks else chat.name)
        conversation = Conversation(memory=memory, say=say, terminal=terminal, scope=scope)
        yield conversation
        await conversation.leave()
    finally:
        await memory.close()


@asynccontextmanager
async def _remote(parsed: argparse.Namespace, terminal: Terminal) -> AsyncIterator[Conversation]:
    """Meet the processes that serve the memory that was typed."""
    system = system_named(parsed.system)
    if system.connect is None:
        served = " and ".join(one.name for one in SYSTEMS.values() if one.parts)
        raise InputError(f"--bus is for {served}; the {parsed.system} memory talks in this process")
    for name in OF_THE_SERVERS:
        if getattr(parsed, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"{option} is decided by the processes that serve; leave it out with --bus")
    scope = _scope(parsed)
    memory = system.connect(partial(_caller, parsed.bus), partial(_show_calls, terminal.aside))
    status = await memory.inspect("status", {}, scope)
    counts = memory.status_line(status)
    terminal.aside(f"The memory of {_name(scope)} in the processes on the bus{counts and f': {counts}'}.")
    for name, part in system.parts.items():
        if part.gives is not None and part.gives not in status:
            terminal.aside(f"! no process serves {name}. Start one: {start_command(name)}")
    terminal.aside("/help lists the commands, /quit ends.")
    conversation = Conversation(memory=memory, say=memory.say, terminal=terminal, scope=scope)
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


def _greet(memory: SystemMemory, scope: Scope, terminal: Terminal, model: str) -> None:
    terminal.aside(f"Answers come from: {model}.")
    if STAND_IN in model:
        terminal.aside("It follows written rules; no language model is behind it. Choose one with --chat ollama:NAME.")
    if memory.is_forgetful:
        terminal.aside("Nothing of this conversation is written; when it ends, all of it is forgotten.")
    elif not scope.user:
        terminal.aside(
            f"--thread-id {scope.session} comes back to it; --owner NAME gives every thread of NAME one memory."
        )
    terminal.aside("/help lists the commands, /quit ends.")


class ConversationEnd(Exception):  # noqa: N818  (not an error)
    """The conversation was ended by a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """What can be typed behind a slash; `needs` is the operation without which the memory does not have it."""

    usage: str
    help: str
    act: Callable[[str], Awaitable[None]]
    needs: str | None = None


@dataclass(kw_only=True)
class Conversation:
    """One owner's talk with a memory; errors of the memory or the model are the caller's to show."""

    memory: SystemMemory
    say: Say
    terminal: Terminal
    scope: Scope
    _said: str = ""

    async def hear(self, line: str) -> None:
        """Do what was typed; raise `ConversationEnd` if it was to end."""
        typed = line.strip()
        if typed.startswith("/"):
            name, _, argument = typed.partition(" ")
            await self._command(name).act(argument.strip())
        elif typed:
            await self._turn(typed)

    async def leave(self) -> None:
        """End the session with the conversation, where sessions end."""
        if "job.end" in self.memory.capabilities():
            await self._end(SHUTDOWN)

    async def _turn(self, said: str) -> None:
        turn = await self.say(said, self.scope)
        self._said = said
        self.terminal.answer(turn.answer)
        for note in turn.notes:
            self.terminal.aside(f"! {note}")
        # While the next line is awaited nothing runs here, and the next turn may ask for this one.
        await self.memory.settle()

    def commands(self) -> Mapping[str, Command]:
        """Return what can be typed behind a slash, by name, as far as the memory can do it."""
        every = (
            Command("/list [KIND]", "what is remembered, of one kind or of all", self._list, "list"),
            Command("/search TEXT", "what is remembered, by meaning", self._search, "search"),
            Command(
                "/forget WHAT", "delete a memory and what repeats it, by its name, id or the words for it", self._forget
            ),
            Command(
                "/context [TEXT]",
                "what the memory puts before a model, for a text or the last turn",
                self._context,
                "context",
            ),
            Command("/status", "how much is remembered, and how", self._status, "inspect.status"),
            Command("/good", "rate the last answer: found before others", self._rate(1), "job.rate"),
            Command("/bad", "rate it: found after others", self._rate(-1), "job.rate"),
            Command("/run JOB NAME=VALUE", f"a job of the memory: {self._jobs()}", self._run),
            Command(
                "/end",
                "end the session: what it left open is settled, and the next line begins another",
                lambda _: self._end(EXPLICIT),
                "job.end",
            ),
            Command(
                "/new", "start a new session: the memory stays, the conversation so far is out of sight", self._new
            ),
            Command("/help", "these lines", self._help),
            Command("/quit", "end, as Ctrl-D does; Ctrl-C stops an answer", self._quit),
        )
        able = self.memory.capabilities()
        return {one.usage.split()[0]: one for one in every if one.needs is None or one.needs in able}

    def _command(self, name: str) -> Command:
        commands = self.commands()
        if name not in commands:
            raise InputError(
                f"there is no command {name!r:.40}.{did_you_mean(name, commands)} There are: {', '.join(commands)}"
            )
        return commands[name]

    async def _list(self, kind: str) -> None:
        found = await self.memory.list(self._owner, [kind] if kind else [])
        self._show(rows_of(self.scope, found), "Nothing is remembered.")

    async def _search(self, text: str) -> None:
        if not text:
            raise InputError("/search: say what to look for, such as '/search where I live'")
        found = await self.memory.search(Query(text=text), self._owner)
        self._show(rows_of(self.scope, found), "No memories found.")

    async def _forget(self, what: str) -> None:
        if not what:
            raise InputError("/forget: say what: a name or an id as /list shows it, or words such as '/forget my name'")
        if "job.forget" in self.memory.capabilities():
            # Such a memory knows words and ids, and says itself what it did.
            self.terminal.aside(await self.memory.run("forget", {"what": what}, self.scope))
            return
        done = await forget_meant(self.memory, what, self._owner)
        gone = rows_of(self.scope, done.gone)
        # By its name a fact can be told again; of what has none the first stands for all.
        named = dict.fromkeys(row_name(row) for row in gone if is_named(row))
        names = [*named] or [row_name(row) for row in gone][:1]
        more = f", and {len(gone) - len(names)} more that say it" if len(gone) > len(names) else ""
        self.terminal.aside(f"Forgotten: {', '.join(names)}{more}." if gone else "Nothing was forgotten.")
        if done.mentions:
            self.terminal.aside("These mention it too; /forget with an id forgets one:")
            self._show(rows_of(self.scope, done.mentions), "")

    async def _context(self, text: str) -> None:
        asked = text or self._said
        if not asked:
            raise InputError("/context: nothing has been said yet; give a text")
        context = await self.memory.context(Query(text=asked), self.scope)
        self.terminal.aside(context or "Nothing is remembered for it.")

    async def _status(self, _: str) -> None:
        self.terminal.aside(self.memory.status_line(await self.memory.inspect("status", {}, self.scope)))

    def _rate(self, value: int) -> Callable[[str], Awaitable[None]]:
        async def rate(_: str) -> None:
            is_kept = await self.memory.run("rate", {"value": value}, self.scope)
            self.terminal.aside("Rated." if is_kept else "That turn is not remembered, so there is nothing to rate.")

        return rate

    async def _run(self, typed: str) -> None:
        if not typed:
            raise InputError(f"/run: say which job: {self._jobs()}")
        job, *arguments = typed.split(" ")
        report = await self.memory.run(job, job_arguments([one for one in arguments if one]), self.scope)
        self.terminal.aside("Done." if report is None else json_text(report, indent=2))

    async def _end(self, reason: str) -> None:
        report = await self.memory.run("end", {"reason": reason}, self.scope)
        if report["ended"]:
            kept = "its summary is kept" if report["summary"] else "it was too short for a summary"
            self.terminal.aside(f"The session is ended: {kept}. Held memories that are kept now: {report['kept']}.")
        elif report["waiting"]:
            turns = f"{report['waiting']} turn{'s' if report['waiting'] > 1 else ''}"
            self.terminal.aside(
                f"! The session is not ended: the model is not there to read {turns}. They are kept and wait for it."
            )
        elif reason == EXPLICIT:
            self.terminal.aside("There is no session to end.")

    async def _new(self, _: str) -> None:
        self.scope = replace(self.scope, session=random_id())
        self.terminal.aside("A new session.")

    async def _help(self, _: str) -> None:
        commands = self.commands().values()
        width = max(len(one.usage) for one in commands)
        self.terminal.aside("\n".join(f"{one.usage:{width}}  {one.help}" for one in commands))

    async def _quit(self, _: str) -> None:
        raise ConversationEnd

    def _jobs(self) -> str:
        own = (one.removeprefix("job.") for one in self.memory.capabilities() if one.startswith("job."))
        return ", ".join(sorted(own)) or "none"

    @property
    def _owner(self) -> Scope:
        """The scope of all of the owner's sessions; of nobody's it is the session itself."""
        return replace(self.scope, session=None) if self.scope.user else self.scope

    def _show(self, rows: Sequence[Row], for_none: str) -> None:
        self.terminal.aside(row_table(rows) if rows else for_none)


class WatchedChat:
    """Tells `show` what `inner` asks of tools, as it asks, and what they answered, before it reads that."""

    def __init__(self, inner: ChatModel, show: Show) -> None:
        self.name = inner.name
        self._inner = inner
        self._show = show

    async def chat(self, request: ChatRequest) -> Reply:
        answered = list(takewhile(lambda message: message.role == "tool", reversed(request.messages)))
        for message in reversed(answered):
            self._show(answer_line(message.content))
        reply = await self._inner.chat(request)
        for called in reply.tool_requests:
            self._show(call_line(called.name, called.arguments))
        return reply


def call_line(name: str, arguments: Mapping[str, Tree]) -> str:
    """Return the line that shows a call, as it is written in a program.

    >>> call_line("save_topic", {"topic": "user.name", "content": "Ana"})
    '  → save_topic(topic="user.name", content="Ana")'
    """
    given = ", ".join(f"{key}={json_text(value)}" for key, value in arguments.items())
    return f"  → {cell(f'{name}({given})', SHOWN_CHARACTERS)}"


def answer_line(text: str) -> str:
    """Return the line that shows what a tool answered."""
    return f"  ← {cell(text, SHOWN_CHARACTERS)}"


class BriefBus:
    """A connection for each request: between two typed lines nothing runs that could answer the server's pings."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def request(self, envelope: Envelope, reply_subject: str, *, timeout_seconds: float) -> Envelope:
        """Publish and return the reply, as a bus does."""
        async with open_bus(self._address, "chat") as bus:
            return await bus.request(envelope, reply_subject, timeout_seconds=timeout_seconds)


def _caller(address: str, part: str) -> Caller:
    return Caller(bus=BriefBus(address), part=part, new_id=random_id, name="chat")


def _show_calls(show: Show, outcomes: Sequence[ToolCall]) -> None:
    """Show what other processes asked of tools."""
    for outcome in outcomes:
        show(call_line(outcome.name, outcome.args))
        show(answer_line(outcome.text))
