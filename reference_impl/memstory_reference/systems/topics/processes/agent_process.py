"""The agent that talks in its own process, and the conversation with it as other processes have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel
from memstory.contract.target import Capability
from memstory.contract.values import ToolCall, Tree
from memstory_reference.bus.calls import Caller, CallServer, refuse_a_second
from memstory_reference.errors import InputError
from memstory_reference.ports import Bus, NewId
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.processes.memory_process import RemoteMemory
from memstory_reference.systems.topics.system import TopicsSystem
from memstory_reference.tooling.agent import NAME, AgentConfig, Answer, GeneratorAgent
from memstory_reference.tooling.tools import ToolBox

PART = "agent"
START_BY = "memstory-reference serve agent"
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
            PART, {"ask": self._ask, "status": self._status, "forget": self._forget}, bus, store="", new_id=new_id
        )
        self._caller = Caller(bus=bus, part=PART, new_id=new_id, name=PART, start_by=START_BY)

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
        return Answer(
            answer=found["answer"],
            thinking=found["thinking"],
            tool_calls=calls,
            query_id=found["query_id"],
            notes=tuple(found["notes"]),
        )

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
