"""The manager system while it runs: one memory that is kept clean, and a conversation for each owner and session."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta

from memstory.contract.clock import Clock
from memstory.contract.values import Json, ToolCall, ToolSchema
from memstory_reference.input_checks import checked_owner
from memstory_reference.ports import SystemPorts
from memstory_reference.storage.recurring import Recurring
from memstory_reference.storage.tombstones import Tombstones
from memstory_reference.systems.manager.loop import ManagerAgent, ManagerAnswer, WindowEntry
from memstory_reference.systems.manager.manager import ManagerConfig, MemoryManager
from memstory_reference.systems.manager.memories.memory import Memory, MemoryType, statements
from memstory_reference.systems.manager.memory_tools import SPECS, ManagerTools

LOG = logging.getLogger(__name__)
KEPT_EVENTS = 100


class Housekeeping:
    """Runs `cleanup_expired` in the background; `events` are the runs that removed something."""

    def __init__(self, manager: MemoryManager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock
        self._recurring = Recurring("memory_cleanup", self.clean_up, clock)
        self.stop, self.settle = self._recurring.stop, self._recurring.settle
        self.runs = 0
        self.events: deque[dict[str, str | int]] = deque(maxlen=KEPT_EVENTS)

    async def start(self) -> None:
        """Clean up now, and from now on every interval."""
        await self.clean_up()
        await self._recurring.start(timedelta(seconds=self._manager.config.cleanup_interval_seconds))

    async def clean_up(self) -> int:
        """Clean up once and tell of it, if anything was removed."""
        deleted = await self._manager.cleanup_expired()
        self.runs += 1
        if deleted:
            LOG.info("memory_cleanup deleted=%d", deleted)
            self.events.append({"event": "memory_cleanup", "deleted": deleted, "at": self._clock.now().isoformat()})
        return deleted


KEPT_CONVERSATIONS = 1_000


class ManagerSystem:
    """A memory with three tools and an agent that talks. `open` before anything else."""

    def __init__(self, *, ports: SystemPorts, config: ManagerConfig, tombstones: Tombstones | None = None) -> None:
        self.manager = MemoryManager(
            config=config,
            store=ports.store,
            embedder=ports.embedder,
            clock=ports.clock,
            new_id=ports.new_id,
            tombstones=tombstones,
        )
        self.housekeeping = Housekeeping(self.manager, ports.clock)
        self._ports = ports
        self._conversations: dict[tuple[str, str], ManagerAgent] = {}

    async def open(self) -> None:
        """Clean up, and from now on every interval."""
        await self.housekeeping.start()

    async def close(self) -> None:
        """Stop cleaning up and release the store."""
        try:
            await self.housekeeping.stop()
        finally:
            self.manager.tombstones.close()
            await self._ports.store.close()

    async def settle(self) -> None:
        """Return when no cleanup is under way."""
        await self.housekeeping.settle()

    async def say(self, text: str, *, owner: str, session: str) -> ManagerAnswer:
        """Take one turn of a conversation."""
        checked_owner(owner)
        checked_owner(session, "session")
        return await self._conversation(owner, session).process(text)

    def window(self, owner: str, session: str) -> Sequence[WindowEntry]:
        """Return the turns that the next prompt of a conversation will hold, oldest first."""
        conversation = self._conversations.get((owner, session))
        return conversation.window.entries if conversation else ()

    def tools(self) -> Sequence[ToolSchema]:
        """Return the tools as a model sees them."""
        return SPECS

    async def call_tool(self, name: str, arguments: object, *, owner: str, session: str | None = None) -> ToolCall:
        """Call a tool for an owner; what is wrong with the call is the answer, in words."""
        return await ManagerTools(self.manager, owner, session, self.forget).call(name, arguments)

    async def forget(self, owner: str, memory_id: str) -> Sequence[Memory]:
        """Forget a memory with the turns that repeat it, in open conversations too; return what is gone."""
        gone = await self.manager.forget_saying(owner, memory_id)
        stated = [one for memory in gone[:1] for one in statements(memory)]
        for (whose, _), conversation in self._conversations.items():
            if whose == owner:
                conversation.forget(stated)
        return gone

    async def status(self, owner: str) -> Mapping[str, Json]:
        """Return counts of this owner's rows, and what the cleanups removed of everybody's; no content."""
        return {
            "rows": await self.manager.count(owner),
            **{str(kind): await self.manager.count(owner, kind) for kind in MemoryType},
            "unreadable": await self.manager.unreadable(owner),
            "not_stored": sum(one.not_stored for (whose, _), one in self._conversations.items() if whose == owner),
            "cleanup_runs": self.housekeeping.runs,
            "cleanups": list(self.housekeeping.events),
            "embedder": self._ports.embedder.model,
            "chat": self._ports.chat.name,
        }

    def _conversation(self, owner: str, session: str) -> ManagerAgent:
        key = (owner, session)
        conversation = self._conversations.pop(key, None) or ManagerAgent(
            manager=self.manager,
            chat=self._ports.chat,
            clock=self._ports.clock,
            owner=owner,
            session=session,
            forget=self.forget,
        )
        # The latest stands last; the one that was silent longest goes first.
        self._conversations[key] = conversation
        if len(self._conversations) > KEPT_CONVERSATIONS:
            del self._conversations[next(iter(self._conversations))]
        return conversation
