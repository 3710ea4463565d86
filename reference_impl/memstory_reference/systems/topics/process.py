"""The topics memory split over processes that meet on a bus: the memory, its tools, the agent that talks.

Each part is here as its process has it, and the memory and the conversation as other processes have them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import signature
from typing import cast

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel
from memstory.contract.target import Capability
from memstory.contract.values import ToolCall, Tree
from memstory_reference.bus.calls import Act, Caller, CallServer, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS
from memstory_reference.ports import Bus, NewId
from memstory_reference.systems.topics.engrams import EngramEntry, FoundEngram, TopicEntry
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.system import Retention, TopicsSystem
from memstory_reference.systems.topics.tools import Toolset, topic_tools
from memstory_reference.tooling.agent import NAME, AgentConfig, Answer, GeneratorAgent
from memstory_reference.tooling.tools import ToolBox, ToolServer

MEMORY = "memory"
START_MEMORY = "memstory-reference serve memory"

_CALLED = (
    *("write_topic", "topic_entry", "write_episodic", "search_episodic", "list_topics", "list_engrams"),
    *("entry", "forget", "forget_repeats", "reward", "rate_turn"),
)
"""The methods of the service that other processes may call."""

_OWN = ("owner", "durable")
"""What no caller says by an argument: the owner is the envelope's, and only the memory itself forgets for good."""


class MemoryPart:
    """The one process that has the store: it answers calls, and turns every response into an engram."""

    def __init__(self, service: MemoryService, bus: Bus, new_id: NewId, clock: Clock) -> None:
        self._service = service
        self._retention = Retention(service, clock)
        self._bus = bus
        self._agent = MemoryAgent(service, bus)
        self._server = CallServer(MEMORY, self._acts(), bus, store="", new_id=new_id)
        self._caller = Caller(bus=bus, part=MEMORY, new_id=new_id, name=MEMORY, start_by=START_MEMORY)

    async def start(self) -> None:
        """Serve from now on; SetupError if another process does already."""
        await refuse_a_second(self._caller, store="")
        await self._retention.start()
        await self._agent.start()
        await self._server.start()

    async def stop(self) -> None:
        """Answer and write what was taken, then serve no more."""
        await self._retention.stop()
        await self._server.stop()
        await self._agent.stop()

    async def come_back(self) -> None:
        """Do nothing: a server that is there again knows what we listen to."""

    def _acts(self) -> dict[str, Act]:
        called = {name: self._act(getattr(self._service, name)) for name in _CALLED}
        return {**called, "status": self._status, "settle": self._settle}

    def _act(self, method: Callable[..., Awaitable[object]]) -> Act:
        known = {one.name: one.annotation for one in signature(method).parameters.values() if one.name not in _OWN}

        async def act(args: Mapping[str, Tree], owner: str) -> Tree:
            for name in (one for one, kind in known.items() if kind == "str"):
                if not isinstance(args.get(name), str):
                    raise InputError(f"{name} must be text, not {type(args.get(name)).__name__}")
            if not isinstance(args.get("metadata"), dict | None):
                raise InputError("metadata must be an object")
            return _data(await method(owner, **{name: args[name] for name in known if name in args}))

        return act

    async def _status(self, _: Mapping[str, Tree], owner: str) -> Tree:
        return {
            "topics": await self._service.count(owner, "topic"),
            "episodic": await self._service.count(owner, "episodic"),
            **self._agent.counts(),
        }

    async def _settle(self, _: Mapping[str, Tree], __: str) -> Tree:
        await self._bus.settle()
        return None


class RemoteMemory:
    """The topics memory over the bus, for tools and for people; each method is as `MemoryService` has it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def write_topic(self, owner: str, topic: str, content: str) -> str:
        return str(await self._caller.call("write_topic", owner, topic=topic, content=content))

    async def topic_entry(self, owner: str, topic: str) -> TopicEntry | None:
        found = await self._caller.call("topic_entry", owner, topic=topic)
        return None if found is None else _topic(found)

    async def write_episodic(self, owner: str, content: str, metadata: Mapping[str, Tree] | None = None) -> str:
        attached = None if metadata is None else dict(metadata)
        return str(await self._caller.call("write_episodic", owner, content=content, metadata=attached))

    async def search_episodic(
        self,
        owner: str,
        query: str,
        top_k: int | None = None,
        *,
        min_score: float | None = None,
        where: Mapping[str, Tree] | None = None,
    ) -> list[FoundEngram]:
        found = await self._caller.call(
            "search_episodic", owner, query=query, top_k=top_k, min_score=min_score, where=where and dict(where)
        )
        return [FoundEngram(**one) for one in found]

    async def list_topics(self, owner: str, prefix: str = "") -> list[TopicEntry]:
        return [_topic(one) for one in await self._caller.call("list_topics", owner, prefix=prefix)]

    async def list_engrams(self, owner: str, where: Mapping[str, Tree] | None = None) -> list[EngramEntry]:
        found = await self._caller.call("list_engrams", owner, where=where and dict(where))
        return [EngramEntry(**one) for one in found]

    async def entry(self, owner: str, entry_id: str) -> TopicEntry | EngramEntry | None:
        found = await self._caller.call("entry", owner, entry_id=entry_id)
        return None if found is None else _entry(found)

    async def reward(self, owner: str, engram_id: str, value: float) -> bool:
        return bool(await self._caller.call("reward", owner, engram_id=engram_id, value=value))

    async def rate_turn(self, owner: str, query_id: str, value: float) -> bool:
        return bool(await self._caller.call("rate_turn", owner, query_id=query_id, value=value))

    async def forget_repeats(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        found = await self._caller.call("forget_repeats", owner, entry_id=entry_id)
        if found is None:
            return None
        engrams, mentions = ([EngramEntry(**one) for one in found[name]] for name in ("engrams", "mentions"))
        topics = [_topic(one) for one in found["topics"]]
        return ForgottenEntry(entry=_entry(found["entry"]), engrams=engrams, mentions=mentions, topics=topics)

    async def forget(self, owner: str, entry_id: str) -> bool:
        return bool(await self._caller.call("forget", owner, entry_id=entry_id))


def _data(found: object) -> Tree:
    if isinstance(found, list):
        return [_data(one) for one in found]
    return asdict(found) if isinstance(found, TopicEntry | EngramEntry | FoundEngram | ForgottenEntry) else found


def _entry(found: Mapping[str, Tree]) -> TopicEntry | EngramEntry:
    return _topic(found) if "topic" in found else EngramEntry(**found)


def _topic(found: Mapping[str, Tree]) -> TopicEntry:
    return TopicEntry(**{**found, "since": [EngramEntry(**one) for one in found["since"]]})


TOOLS = "tools"
OF_THE_TIME = 0.8
"""The share of a tool's time that the memory has, so that the tool can still say that it was silent."""


class ToolsPart:
    """Serves the tools; several processes may, and one of them answers each call."""

    def __init__(
        self,
        bus: Bus,
        *,
        toolset: Toolset,
        clock: Clock,
        new_id: NewId,
        tool_timeout_seconds: float,
        result_characters: int = DEFAULT_LIMITS.max_result_characters,
    ) -> None:
        caller = Caller(
            bus=bus,
            part=MEMORY,
            new_id=new_id,
            name=TOOLS,
            start_by=START_MEMORY,
            timeout_seconds=OF_THE_TIME * tool_timeout_seconds,
        )
        self._servers = [
            ToolServer(tool, bus, result_characters) for tool in topic_tools(RemoteMemory(caller), clock, toolset)
        ]

    async def start(self) -> None:
        """Serve and announce every tool."""
        for server in self._servers:
            await server.start()

    async def stop(self) -> None:
        """Withdraw the tools; what they are doing is finished."""
        for server in self._servers:
            await server.stop()

    async def come_back(self) -> None:
        """Announce the tools again: who asked for them meanwhile was not heard."""
        for server in self._servers:
            await server.announce()


AGENT = "agent"
START_AGENT = "memstory-reference serve agent"
ASK_SECONDS = 600.0
"""A language model on a slow machine takes its time."""


class AgentPart:
    """Answers questions with whatever tools are announced; one process, because it holds what was just said."""

    def __init__(
        self, bus: Bus, *, chat: ChatModel, new_id: NewId, config: AgentConfig, tool_timeout_seconds: float
    ) -> None:
        self._chat = chat
        self._toolbox = ToolBox(bus=bus, new_id=new_id, caller=NAME, timeout_seconds=tool_timeout_seconds)
        self._agent = GeneratorAgent(chat=chat, toolbox=self._toolbox, bus=bus, new_id=new_id, config=config)
        self._server = CallServer(
            AGENT, {"ask": self._ask, "status": self._status, "forget": self._forget}, bus, store="", new_id=new_id
        )
        self._caller = Caller(bus=bus, part=AGENT, new_id=new_id, name=AGENT, start_by=START_AGENT)

    async def start(self) -> None:
        """Learn of the tools that run, then answer; SetupError if another process does already."""
        await refuse_a_second(self._caller, store="")
        await self._toolbox.listen()
        await self._toolbox.inquire()
        await self._agent.start()
        await self._server.start()

    async def stop(self) -> None:
        """Answer what was asked, then answer no more."""
        await self._server.stop()
        await self._agent.stop()
        await self._toolbox.stop()

    async def come_back(self) -> None:
        """Learn of the tools again: what was announced meanwhile was not heard."""
        await self._toolbox.inquire()

    async def _ask(self, args: Mapping[str, Tree], owner: str) -> Tree:
        query, session = args.get("query"), args.get("session_id")
        if not isinstance(query, str) or not isinstance(session, str):
            raise InputError("agent: 'query' and 'session_id' are text")
        return asdict(await self._agent.ask(query, owner=owner, session_id=session))

    async def _status(self, _: Mapping[str, Tree], __: str) -> Tree:
        return {"chat": self._chat.name, "tools": [spec.name for spec in self._toolbox.specs()]}

    async def _forget(self, _: Mapping[str, Tree], owner: str) -> Tree:
        self._agent.forget_windows(owner)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTopics:
    """A conversation whose agent, tools and memory are other processes, as `TopicsSystem` has it in one.

    `show_calls` gets the tool calls before the answer is returned.
    """

    agent: Caller
    memory: Caller
    show_calls: Callable[[Sequence[ToolCall]], None]

    @property
    def service(self) -> RemoteMemory:
        """The memory itself, for commands."""
        return RemoteMemory(self.memory)

    async def say(self, text: str, *, owner: str, session_id: str) -> Answer:
        """Take one turn; UnavailableError if no agent answers."""
        found = await self.agent.long_call("ask", owner, timeout_seconds=ASK_SECONDS, query=text, session_id=session_id)
        calls = [ToolCall(**one) for one in found["tool_calls"]]
        self.show_calls(calls)
        return Answer(**{**found, "tool_calls": calls, "notes": tuple(found["notes"])})

    async def settle(self) -> None:
        """Return when the memory has written what it heard; at once if there is no memory."""
        if await self.memory.alive() is not None:
            await self.memory.call("settle", "")

    async def forget(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        """Delete an entry and every engram that holds what it says, out of the sight of running talks too."""
        await self.settle()
        found = await self.service.forget_repeats(owner, entry_id)
        if await self.agent.alive() is not None:
            await self.agent.call("forget", owner)
        return found

    async def status(self, owner: str) -> dict[str, Tree]:
        """Return what agent and memory say of themselves; who is not there is left out."""
        status: dict[str, Tree] = {}
        for part in (self.memory, self.agent):
            if await part.alive() is not None:
                status |= await part.call("status", owner)
        return status


class RemoteTopicsMemory(TopicsMemory):
    """The topics memory in other processes, as far as a conversation needs it."""

    operations = frozenset({"chat", "list", "search", "get.key"})

    def __init__(self, remote: RemoteTopics, clock: Clock) -> None:
        # It stands where the system in this process does: `capabilities` names what of that it has.
        super().__init__(cast("TopicsSystem", remote), clock)

    @classmethod
    def capabilities(cls) -> frozenset[Capability]:
        return cls.operations | {"inspect.status", "job.rate"}

    @property
    def store_name(self) -> str:
        return "the processes on the bus"
