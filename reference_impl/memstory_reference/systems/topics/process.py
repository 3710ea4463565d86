"""The topics memory split over processes that meet on a bus: the memory, its tools, the agent that talks.

Each part is here as its process has it, and the memory and the conversation as other processes have them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from inspect import signature
from typing import cast

from memstory.contract.clock import Clock
from memstory.contract.codec import decode, encode
from memstory.contract.models import ChatModel
from memstory.contract.target import Scope, ToolCall, Tree, Turn
from memstory_reference.bus import Bus
from memstory_reference.bus.calls import Act, Caller, CallServer, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.ports import NewId
from memstory_reference.systems.topics.agent import GeneratorAgent
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.memory import DEFAULT_SESSION, StoredTopics
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.topics.tools import topic_tools

MEMORY = "memory"
START_MEMORY = "memstory-reference serve memory"

_CALLED = (
    *("write_topic", "topic_entry", "write_episodic", "search_episodic", "list_topics", "list_engrams"),
    *("entry", "forget", "forget_repeats", "reward", "rate_turn"),
)
"""The methods of the service that other processes may call."""

_OWN = {"self", "owner", "durable"}
"""What no caller says by an argument: the owner is the envelope's, and only the memory itself forgets for good."""

_KIND = "$kind"
"""Names the class of what travels; no metadata has such a key."""

_KINDS = {one.__name__: one for one in (EngramEntry, FoundEngram, TopicEntry, ForgottenEntry)}


class MemoryPart:
    """The one process that has the store: it answers calls, and turns every response into an engram."""

    def __init__(self, service: MemoryService, bus: Bus, new_id: NewId) -> None:
        self._service = service
        self._bus = bus
        self._agent = MemoryAgent(service, bus)
        self._server = CallServer(MEMORY, self._acts(), bus, store="", new_id=new_id)
        self._caller = Caller(bus=bus, part=MEMORY, new_id=new_id, name=MEMORY, start_by=START_MEMORY)

    async def start(self) -> None:
        """Serve from now on; SetupError if another process does already."""
        await refuse_a_second(self._caller, store="")
        await self._agent.start()
        await self._server.start()

    async def stop(self) -> None:
        """Answer and write what was taken, then serve no more."""
        await self._server.stop()
        await self._agent.stop()

    async def come_back(self) -> None:
        """Do nothing: a server that is there again knows what we listen to."""

    def _acts(self) -> dict[str, Act]:
        called = {name: self._act(getattr(self._service, name)) for name in _CALLED}
        return {**called, "status": self._status, "settle": self._settle}

    def _act(self, method: Callable[..., Awaitable[object]]) -> Act:
        parameters = signature(method)

        async def act(args: Mapping[str, Tree], owner: str) -> Tree:
            taken = parameters.parameters.keys() - _OWN
            try:
                call = parameters.bind(owner, **{name: value for name, value in args.items() if name in taken})
            except TypeError as error:
                raise InputError(f"{method.__name__}: {error}") from error
            return _sent(await method(*call.args, **call.kwargs))

        return act

    async def _status(self, _: Mapping[str, Tree], owner: str) -> Tree:
        return {**await self._service.counts(owner), **self._agent.counts()}

    async def _settle(self, _: Mapping[str, Tree], __: str) -> Tree:
        await self._bus.settle()
        return None


class RemoteMemory:
    """The service in another process: those of its methods that other processes may call."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Tree]]:
        if name not in _CALLED:
            raise AttributeError(name)
        parameters = signature(getattr(MemoryService, name))

        async def call(*args: Tree, **named: Tree) -> Tree:
            given = parameters.bind(self, *args, **named).arguments
            told = {key: value for key, value in given.items() if key not in _OWN}
            return _received(await self._caller.call(name, given["owner"], **told))

        return call


def remote_service(caller: Caller) -> MemoryService:
    """Return the service as tools and people call it over the bus."""
    return cast("MemoryService", RemoteMemory(caller))


def _sent(found: object) -> Tree:
    """Return as JSON what the service has returned."""
    if isinstance(found, list):
        return [_sent(one) for one in found]
    if type(found) not in _KINDS.values():
        return found
    told = {one.name: _sent(getattr(found, one.name)) for one in fields(found)}  # type: ignore[arg-type]
    return {_KIND: type(found).__name__, **told}


def _received(sent: Tree) -> Tree:
    """Return what `_sent` was given."""
    if isinstance(sent, list):
        return [_received(one) for one in sent]
    if not isinstance(sent, dict) or _KIND not in sent:
        return sent
    return _KINDS[sent[_KIND]](**{name: _received(value) for name, value in sent.items() if name != _KIND})


TOOLS = "tools"
OF_THE_TIME = 0.8
"""The share of a tool's time that the memory has, so that the tool can still say that it was silent."""


class ToolsPart:
    """Serves the tools; several processes may, and one of them answers each call."""

    def __init__(self, bus: Bus, *, settings: TopicsSettings, clock: Clock, new_id: NewId) -> None:
        caller = Caller(
            bus=bus,
            part=MEMORY,
            new_id=new_id,
            name=TOOLS,
            start_by=START_MEMORY,
            timeout_seconds=OF_THE_TIME * settings.tool_timeout_seconds,
        )
        server = topic_tools(remote_service(caller), clock, settings, bus)
        # Who asked for the tools while the bus was away was not heard.
        self.start, self.stop, self.come_back = server.start, server.stop, server.announce


AGENT = "agent"
START_AGENT = "memstory-reference serve agent"
ASK_SECONDS = 600.0
"""A language model on a slow machine takes its time."""


class AgentPart:
    """Answers questions with whatever tools are announced; one process, because it holds what was just said."""

    def __init__(self, bus: Bus, *, chat: ChatModel, new_id: NewId, settings: TopicsSettings) -> None:
        self._chat = chat
        self._agent = GeneratorAgent(chat=chat, bus=bus, new_id=new_id, settings=settings)
        self._server = CallServer(
            AGENT, {"ask": self._ask, "status": self._status, "forget": self._forget}, bus, store="", new_id=new_id
        )
        self._caller = Caller(bus=bus, part=AGENT, new_id=new_id, name=AGENT, start_by=START_AGENT)

    async def start(self) -> None:
        """Learn of the tools that run, then answer; SetupError if another process does already."""
        await refuse_a_second(self._caller, store="")
        await self._agent.start()
        await self.come_back()
        await self._server.start()

    async def stop(self) -> None:
        """Answer what was asked, then answer no more."""
        await self._server.stop()
        await self._agent.stop()

    async def come_back(self) -> None:
        """Learn of the tools: what was announced before, or while the bus was away, was not heard."""
        await self._agent.toolbox.inquire()

    async def _ask(self, args: Mapping[str, Tree], owner: str) -> Tree:
        query, session, query_id = (args.get(name) for name in ("query", "session_id", "query_id"))
        if not isinstance(query, str) or not isinstance(session, str) or not isinstance(query_id, str | None):
            raise InputError("agent: 'query' and 'session_id' are text")
        return encode(await self._agent.ask(query, owner=owner, session_id=session, query_id=query_id))

    async def _status(self, _: Mapping[str, Tree], __: str) -> Tree:
        return {"chat": self._chat.name, "tools": [spec.name for spec in self._agent.toolbox.specs()]}

    async def _forget(self, _: Mapping[str, Tree], owner: str) -> Tree:
        self._agent.forget_windows(owner)
        return None


class RemoteTopicsMemory(StoredTopics):
    """The topics memory in other processes, as far as a conversation needs it.

    `show_calls` gets the tool calls before the answer is returned.
    """

    operations = frozenset({"chat", "list", "search", "get.key", "delete.about"})
    store_name = "the processes on the bus"

    def __init__(
        self, *, agent: Caller, memory: Caller, show_calls: Callable[[Sequence[ToolCall]], None], clock: Clock
    ) -> None:
        super().__init__(remote_service(memory), clock)
        self._agent = agent
        self._memory = memory
        self._show_calls = show_calls

    async def close(self) -> None:
        """Do nothing: each call has its own connection."""

    async def say(self, text: str, scope: Scope) -> Turn:
        query_id, session_id = self._agent.new_id(), scope.session or DEFAULT_SESSION
        found = await self._agent.long_call(
            "ask", scope.user, timeout_seconds=ASK_SECONDS, query=text, session_id=session_id, query_id=query_id
        )
        turn: Turn = decode(Turn, found)
        self._show_calls(turn.tool_calls)
        self._answered[scope] = query_id
        return turn

    async def settle(self) -> None:
        """Return when the memory has written what it heard; at once if there is no memory."""
        if await self._memory.alive() is not None:
            await self._memory.call("settle", "")

    async def _forget_talks(self, owner: str) -> None:
        if await self._agent.alive() is not None:
            await self._agent.call("forget", owner)

    async def _look_status(self, scope: Scope) -> Tree:
        """Return what agent and memory say of themselves; who is not there is left out."""
        status: dict[str, Tree] = {}
        for part in (self._memory, self._agent):
            if await part.alive() is not None:
                status |= await part.call("status", scope.user)
        return status
