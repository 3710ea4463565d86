"""The topics system while it runs: one bus, one memory, its tools, the agent that talks and the one that remembers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

from memstory.contract.clock import Clock
from memstory.contract.errors import MemstoryError
from memstory.contract.values import Json, ToolCall, ToolSchema
from memstory_reference.bus import InProcessBus
from memstory_reference.bus.subjects import tool_request
from memstory_reference.ports import Bus, Envelope, SystemPorts
from memstory_reference.storage.recurring import Recurring
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.systems.topics.forgetting import ForgottenEntry
from memstory_reference.systems.topics.memory_agent import MemoryAgent
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.settings import TopicsConfig
from memstory_reference.systems.topics.tools import Toolset, topic_tools
from memstory_reference.tooling.agent import AgentConfig, Answer, GeneratorAgent
from memstory_reference.tooling.tools import ToolBox, ToolServer, call_tool

EVERY = timedelta(hours=1)

_log = logging.getLogger(__name__)


class Retention:
    """Purges every owner's engrams in the background; does nothing where the settings name no retention."""

    def __init__(self, service: MemoryService, clock: Clock) -> None:
        self._service = service
        self._recurring = Recurring("deleting engrams beyond the retention", self._purge, clock)
        self.stop, self.settle = self._recurring.stop, self._recurring.settle
        self.purged = 0

    async def start(self) -> None:
        """Purge now, and from now on every hour."""
        if self._service.config.retention_days is None:
            return
        await self._purge()
        await self._recurring.start(EVERY)

    async def _purge(self) -> None:
        try:
            self.purged += await self._service.purge_all()
        except MemstoryError as error:
            _log.warning("engrams beyond the retention could not be deleted: %s", error)


class TopicsSystem:
    """A conversation with a memory. `open` before anything else; `close` leaves all that was acknowledged on disk."""

    def __init__(
        self,
        *,
        ports: SystemPorts,
        config: TopicsConfig,
        toolset: Toolset,
        agent: AgentConfig,
        tool_timeout_seconds: float,
        tombstones: Tombstones | None = None,
        bus: Bus | None = None,
    ) -> None:
        self._tombstones = tombstones or NoTombstones()
        self.bus: Bus = bus or InProcessBus()
        self.service = MemoryService(
            config=config,
            store=ports.store,
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=self._tombstones,
        )
        self.retention = Retention(self.service, ports.clock)
        self._ports = ports
        self._tool_timeout_seconds = tool_timeout_seconds
        self._toolbox = ToolBox(
            bus=self.bus, new_id=ports.new_id, caller="GeneratorAgent", timeout_seconds=tool_timeout_seconds
        )
        # All tools share the one service: its turns are what keeps concurrent writes apart.
        self._tools = topic_tools(self.service, ports.clock, toolset)
        self._servers = [ToolServer(tool, self.bus, config.limits.max_result_characters) for tool in self._tools]
        self._memory_agent = MemoryAgent(self.service, self.bus)
        self._agent = GeneratorAgent(
            chat=ports.chat,
            toolbox=self._toolbox,
            bus=self.bus,
            new_id=ports.new_id,
            config=agent,
            # A server keeps what is published until it is written.
            is_kept=self._has_turn if isinstance(self.bus, InProcessBus) else None,
        )

    async def open(self) -> None:
        """Start everything; return when every tool is announced."""
        await self.retention.start()
        await self._toolbox.listen()
        for server in self._servers:
            await server.start()
        await self._memory_agent.start()
        await self._agent.start()
        await self._toolbox.ready([tool.spec.name for tool in self._tools])

    async def close(self) -> None:
        """Finish what is under way, stop everything, release the store."""
        try:
            await self.retention.stop()
            await self._agent.stop()
            await self.bus.settle()
            for server in self._servers:
                await server.stop()
            await self._memory_agent.stop()
            await self.bus.settle()
            await self._toolbox.stop()
        finally:
            self._tombstones.close()
            await self._ports.store.close()

    async def settle(self) -> None:
        """Return when every message is handled, engrams among them."""
        await self.bus.settle()
        await self.retention.settle()

    async def say(self, text: str, *, owner: str, session_id: str) -> Answer:
        """Take one turn of a conversation; the engram is written after the answer is there."""
        return await self._agent.ask(text, owner=owner, session_id=session_id)

    async def _has_turn(self, owner: str, query_id: str) -> bool:
        await self._memory_agent.settle()
        return bool(await self.service.list_engrams(owner, {"query_id": query_id}))

    async def forget(self, owner: str, entry_id: str) -> ForgottenEntry | None:
        """Delete an entry and every engram that holds what it says, out of the sight of running talks too."""
        await self.bus.settle()  # the turn that told it may be on its way into the memory
        found = await self.service.forget_repeats(owner, entry_id)
        self._agent.forget_windows(owner)
        return found

    def tools(self) -> Sequence[ToolSchema]:
        """Return the announced tools, as the model sees them."""
        # What is announced on the bus is only what a model sees: our own declarations say more.
        own = {tool.spec.name: tool.spec for tool in self._tools}
        return [own.get(spec.name, spec) for spec in self._toolbox.specs()]

    async def call_tool(
        self, name: str, arguments: Mapping[str, Json], *, caller: str, owner: str, session_id: str | None = None
    ) -> ToolCall:
        """Call a tool over the bus as `caller`, without the agent that talks."""
        request = Envelope(
            subject=tool_request(name),
            payload={"args": arguments, "session_id": session_id},
            publisher=caller,
            owner=owner,
            request_id=self._ports.new_id(),
        )
        return await call_tool(self.bus, request, timeout_seconds=self._tool_timeout_seconds)

    async def status(self, owner: str) -> dict[str, Json]:
        """Return counts of this owner's memories, and of what the bus and the ingestion did; no content."""
        return {
            "topics": await self.service.count(owner, "topic"),
            "episodic": await self.service.count(owner, "episodic"),
            "unreadable": await self.service.unreadable(owner),
            **self._memory_agent.counts(),
            "purged": self.retention.purged,
            "messages": self.bus.published,
            "messages_refused": self.bus.refusals,
            "handler_failures": self.bus.failures,
            "tools": [spec.name for spec in self.tools()],
            "embedder": self._ports.embedder.model,
            "chat": self._ports.chat.name,
        }
