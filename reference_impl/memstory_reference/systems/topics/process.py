"""The topics memory split over processes that meet on a bus: the memory, its tools, the agent that talks.

Each part is here as its process has it, and the memory and the conversation as other processes have them.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

from memstory.contract.codec import Misfit, decode, encode
from memstory.contract.models import ChatModel
from memstory.contract.target import Hit, Ref, Request, Scope, ToolCall, Tree, Turn
from memstory_reference.bus import Bus
from memstory_reference.bus.calls import Act, Caller, CallServer, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.ports import NewId
from memstory_reference.system_memory import ForgetResult, SystemMemory
from memstory_reference.systems.topics.agent import GeneratorAgent
from memstory_reference.systems.topics.entries import all_words
from memstory_reference.systems.topics.memory import DEFAULT_SESSION, latest_answer
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsSettings
from memstory_reference.systems.topics.tools import topic_tools

P = ParamSpec("P")
R = TypeVar("R")

MEMORY = "memory"

_CALLED = ("add", "get", "search", "list", "context", "delete", "feedback", "forget", "rate_turn")
"""The operations of the memory that other processes may call."""


class MemoryPart:
    """The one process that has the store: it answers calls, and turns every response into an engram."""

    def __init__(self, memory: MemoryService, bus: Bus, new_id: NewId) -> None:
        self._memory = memory
        self._bus = bus
        self._agent = MemoryAgent(memory, bus)
        acts = {**{name: self._act(name) for name in _CALLED}, "status": self._status, "settle": self._settle}
        self._server = CallServer(MEMORY, acts, bus, store="", new_id=new_id)
        self._caller = Caller(bus=bus, part=MEMORY, new_id=new_id, name=MEMORY)

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

    def _act(self, name: str) -> Act:
        method, hints = getattr(self._memory, name), _hints(name)

        async def act(args: Mapping[str, Tree], owner: str) -> Tree:
            whose = {"owner": owner} if "owner" in hints else {"scope": _scope(args, owner)}
            try:
                given = {key: decode(hints[key], value) for key, value in args.items() if key in hints.keys() - _WHOSE}
                call = signature(method).bind(**given, **whose)
            except (Misfit, TypeError) as error:
                raise InputError(f"{name}: {error}") from error
            if isinstance(ref := given.get("ref"), Ref):
                call.arguments["ref"] = _one_memory(ref)
            return encode(await method(*call.args, **call.kwargs))

        return act

    async def _status(self, _: Mapping[str, Tree], owner: str) -> Tree:
        return {**await self._memory.inspect("status", {}, Scope(user=owner)), **self._agent.counts()}

    async def _settle(self, _: Mapping[str, Tree], __: str) -> Tree:
        await self._bus.settle()
        return None


_WHOSE = {"owner", "scope", "return"}
"""What no caller says by an argument: the owner is the envelope's."""


def _hints(name: str) -> Mapping[str, Any]:
    return get_type_hints(getattr(MemoryService, name))


def _scope(args: Mapping[str, Tree], owner: str) -> Scope:
    session = args.get("session")
    if not isinstance(session, str | None):
        raise InputError("memory: 'session' is text")
    return Scope(user=owner, session=session)


def _one_memory(ref: Ref) -> Ref:
    """Return what names one memory: only the memory itself forgets for good, and nobody all of it from afar."""
    if ref.id is None and ref.key is None:
        raise InputError("name one memory, by id or by key")
    return replace(ref, durable=False)


def _remote(
    operation: Callable[Concatenate[MemoryService, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[RemoteMemory, P], Coroutine[Any, Any, R]]:
    """Return an operation of the memory as one that asks the process which serves it."""

    @wraps(operation)
    async def ask(self: RemoteMemory, /, *args: P.args, **more: P.kwargs) -> R:
        given = Request.of(operation, *args, **more).args
        scope: Scope = given["scope"]
        told = {name: encode(value) for name, value in given.items() if name not in _WHOSE}
        found = await self._memory.call(operation.__name__, scope.user, session=scope.session, **told)
        answer: R = decode(_hints(operation.__name__)["return"], found)
        return answer

    return ask


class RemoteMemory(SystemMemory):
    """The memory in another process: those of its operations that other processes may call."""

    operations = frozenset({"list", "search", "get.key", "delete.about"})
    counted = MemoryService.counted
    store_name = "the processes on the bus"

    def __init__(self, memory: Caller) -> None:
        self._memory = memory

    async def close(self) -> None:
        """Do nothing: each call has its own connection."""

    add = _remote(MemoryService.add)
    get = _remote(MemoryService.get)
    search = _remote(MemoryService.search)
    list = _remote(MemoryService.list)
    context = _remote(MemoryService.context)
    delete = _remote(MemoryService.delete)
    feedback = _remote(MemoryService.feedback)
    forget = _remote(MemoryService.forget)

    def full_text(self, hit: Hit) -> str:
        return all_words(hit)


TOOLS = "tools"
OF_THE_TIME = 0.8
"""The share of a tool's time that the memory has, so that the tool can still say that it was silent."""


class ToolsPart:
    """Serves the tools; several processes may, and one of them answers each call."""

    def __init__(self, bus: Bus, *, settings: TopicsSettings, new_id: NewId) -> None:
        caller = Caller(
            bus=bus,
            part=MEMORY,
            new_id=new_id,
            name=TOOLS,
            timeout_seconds=OF_THE_TIME * settings.tool_timeout_seconds,
        )
        server = topic_tools(RemoteMemory(caller), settings, bus)
        # Who asked for the tools while the bus was away was not heard.
        self.start, self.stop, self.come_back = server.start, server.stop, server.announce


AGENT = "agent"
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
        self._caller = Caller(bus=bus, part=AGENT, new_id=new_id, name=AGENT)

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


class RemoteTopicsMemory(RemoteMemory):
    """The topics memory in other processes, as far as a conversation needs it.

    `show_calls` gets the tool calls before the answer is returned.
    """

    operations = RemoteMemory.operations | {"chat"}

    def __init__(self, *, agent: Caller, memory: Caller, show_calls: Callable[[Sequence[ToolCall]], None]) -> None:
        super().__init__(memory)
        self._agent = agent
        self._show_calls = show_calls
        self._answered: dict[Scope, str] = {}

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

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        await self.settle()  # the turn that told it may be on its way into the memory
        found = await super().forget(memory_id, scope)
        if await self._agent.alive() is not None:
            await self._agent.call("forget", scope.user)
        return found

    async def _job_rate(self, scope: Scope, *, value: float) -> Tree:
        """Rate the latest answer of a session; False if its turn is not remembered."""
        query_id = latest_answer(self._answered, scope)
        return await self._memory.call("rate_turn", scope.user, query_id=query_id, value=value)

    async def _look_status(self, scope: Scope) -> Tree:
        """Return what agent and memory say of themselves; who is not there is left out."""
        status: dict[str, Tree] = {}
        for part in (self._memory, self._agent):
            if await part.alive() is not None:
                status |= await part.call("status", scope.user)
        return status
