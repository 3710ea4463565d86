"""The topics memory with all that goes on around it: the bus on which its tools and its two agents meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from memstory.contract.errors import NotSupported
from memstory.contract.models import ChatModel
from memstory.contract.target import Scope, ToolCall, ToolSchema, Tree, Turn
from memstory_reference.bus import Bus, InProcessBus
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope
from memstory_reference.system_memory import ForgetResult
from memstory_reference.systems.topics.agent import GeneratorAgent
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.tools import topic_tools

DEFAULT_SESSION = "default"


@dataclass(kw_only=True, eq=False)
class TopicsMemory(MemoryService):
    """The whole of it in this process: what is remembered, its tools, the agent that talks, the one that remembers.

    `open` before anything else; `close` leaves all that was acknowledged on disk.
    """

    operations = MemoryService.operations | {"chat", "chat.tools", "chat.window", "tool", "tool.schema", "async_ingest"}

    chat: ChatModel
    bus: Bus = field(default_factory=InProcessBus)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._answered: dict[Scope, str] = {}
        # All tools share the one memory: its turns are what keeps concurrent writes apart.
        self._tools = topic_tools(self, self.settings, self.bus, self._forget_at_once)
        self._memory_agent = MemoryAgent(self, self.bus)
        self._agent = GeneratorAgent(
            chat=self.chat,
            bus=self.bus,
            new_id=self.new_id,
            settings=self.settings,
            is_kept=self._has_turn if isinstance(self.bus, InProcessBus) else None,
        )

    async def open(self) -> None:
        """Start everything; return when every tool is announced."""
        await self._agent.start()
        await self._tools.start()
        await self._memory_agent.start()
        await self._agent.toolbox.ready([one.name for one in self._tools.specs])

    async def close(self) -> None:
        try:
            await self._agent.stop()
            await self.bus.settle()
            await self._tools.stop()
            await self._memory_agent.stop()
            await self.bus.settle()
        finally:
            await super().close()

    async def settle(self) -> None:
        await self.bus.settle()
        await self._memory_agent.settle()

    async def say(self, text: str, scope: Scope) -> Turn:
        query_id, session_id = self.new_id(), scope.session or DEFAULT_SESSION
        turn = await self._agent.ask(text, owner=scope.user, session_id=session_id, query_id=query_id)
        self._answered[scope] = query_id
        return turn

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        # The turn that told it may be on its way into the memory.
        await self.settle()
        return await self._forget_at_once(memory_id, scope)

    async def _forget_at_once(self, memory_id: str, scope: Scope) -> ForgetResult:
        # A tool does not wait for the bus: the question in whose turn it was called may be on it.
        await self._memory_agent.settle()
        found = await super().forget(memory_id, scope)
        self._agent.forget_windows(scope.user)
        return found

    async def tools(self) -> Sequence[ToolSchema]:
        # What is announced on the bus is only what a model sees: our own declarations say more.
        own = {one.name: one for one in self._tools.specs}
        return [own.get(one.name, one) for one in self._agent.toolbox.specs()]

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await self._agent.toolbox.call(
            name, args, owner=scope.user, session_id=scope.session, caller=caller or "OutsideAgent"
        )

    async def _has_turn(self, owner: str, query_id: str, _: str) -> bool:
        await self._memory_agent.settle()
        return bool(await self._engrams(owner, {"query_id": query_id}))

    async def _job_rate(self, scope: Scope, *, value: float) -> Tree:
        """Rate the latest answer of a session; False if its turn is not remembered."""
        return await self.rate_turn(scope.user, latest_answer(self._answered, scope), value)

    async def _job_publish(
        self, scope: Scope, *, subject: Tree = "", payload: Tree = None, publisher: Tree = "OutsideAgent"
    ) -> Tree:
        content = {} if payload is None else payload
        await self.bus.publish(Envelope(subject=subject, payload=content, publisher=str(publisher), owner=scope.user))

    async def _look_bus(self, _: Scope, *, since: int = 0) -> Tree:
        if not isinstance(self.bus, InProcessBus):
            raise NotSupported("inspect.bus", "what is on a server is not logged")
        return [asdict(message) for message in self.bus.log(since)]

    async def _look_status(self, scope: Scope) -> Tree:
        """Return counts of this owner's memories, and of what the bus and the ingestion did; no content."""
        return {
            **await super()._look_status(scope),
            **self._memory_agent.counts(),
            "messages": self.bus.published,
            "messages_refused": self.bus.refusals,
            "handler_failures": self.bus.failures,
            "tools": [one.name for one in await self.tools()],
            "chat": self.chat.name,
        }


def latest_answer(answered: Mapping[Scope, str], scope: Scope) -> str:
    """Return the id of what was answered last in a session."""
    if scope not in answered:
        raise InputError("rate: an answer is rated, and there is none yet")
    return answered[scope]
