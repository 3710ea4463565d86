"""The manager memory with all that goes on around it: it is kept clean, and an agent talks in each session."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memstory.contract.errors import StoryError
from memstory.contract.models import ChatModel
from memstory.contract.target import Item, Receipt, Scope, ToolCall, ToolSchema, Tree, Turn
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.storage.recurring import Recurring
from memstory_reference.system_memory import Conversations, CurrentSessions
from memstory_reference.systems.manager.agent import SPECS, ManagerAgent, ManagerTools
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories import (
    DEFAULT_SESSION,
    Memory,
    expires_at,
    memory_type_of,
    migrate_rows,
    statements,
)

LOG = logging.getLogger(__name__)
KEPT_EVENTS = 100


@dataclass(kw_only=True, eq=False)
class ManagerMemory(MemoryManager):
    """What is remembered, with three tools and agents that talk. `open` before anything else."""

    operations = MemoryManager.operations | {"chat", "chat.tools", "chat.window", "tool", "tool.schema"}

    chat: ChatModel

    def __post_init__(self) -> None:
        super().__post_init__()
        self._sessions = CurrentSessions(DEFAULT_SESSION)
        self._cleaning = Recurring("memory_cleanup", self.cleanup_expired, self.clock)
        self.cleanup_runs = 0
        self.cleanups: deque[dict[str, str | int]] = deque(maxlen=KEPT_EVENTS)
        """The cleanups that removed something."""
        self._conversations = Conversations(
            lambda owner, session: ManagerAgent(manager=self, chat=self.chat, owner=owner, session=session)
        )

    async def open(self) -> None:
        """Clean up now, and from now on every interval."""
        await self.cleanup_expired()
        await self._cleaning.start(timedelta(seconds=self.settings.cleanup_interval))

    async def close(self) -> None:
        """Stop cleaning up and release the store."""
        try:
            await self._cleaning.stop()
        finally:
            await super().close()

    async def cleanup_expired(self) -> int:
        """Do so, and tell of it if anything was removed."""
        deleted = await super().cleanup_expired()
        self.cleanup_runs += 1
        if deleted:
            LOG.info("memory_cleanup deleted=%d", deleted)
            self.cleanups.append({"event": "memory_cleanup", "deleted": deleted, "at": self.clock.now().isoformat()})
        return deleted

    async def settle(self) -> None:
        await self._cleaning.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._sessions.note(scope)
        return await super().add(items, scope)

    async def forget_saying(self, owner: str, memory_id: str) -> Sequence[Memory]:
        """Do so in open conversations too."""
        gone = await super().forget_saying(owner, memory_id)
        stated = [one for memory in gone[:1] for one in statements(memory)]
        for conversation in self._conversations.of_owner(owner).values():
            conversation.forget(stated)
        return gone

    async def say(self, text: str, scope: Scope) -> Turn:
        checked_owner(scope.user)
        session = checked_owner(self._sessions.note(scope), "session")
        return await self._conversations.of(scope.user, session).process(text)

    async def tools(self) -> Sequence[ToolSchema]:
        return SPECS

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await ManagerTools(self, scope.user, self._sessions.note(scope)).call(name, args)

    async def _job_cleanup(self, _: Scope) -> Tree:
        return {"deleted": await self.cleanup_expired()}

    async def _job_migrate(self, scope: Scope, *, rows: Tree = None) -> Tree:
        if not isinstance(rows, list | None):
            raise InputError(f"migrate: rows must be a list of objects, not {type(rows).__name__}")
        memories, skipped, warnings = migrate_rows(rows or ())
        await self.put(scope.user, memories)
        return {"migrated": len(memories), "skipped": skipped, "warnings": warnings}

    async def _look_window(self, scope: Scope) -> Tree:
        talk = self._conversations.of_owner(scope.user).get(self._sessions.of(scope) or DEFAULT_SESSION)
        return [
            {"role": entry.role, "content": entry.content, "timestamp": entry.timestamp.isoformat()}
            for entry in (talk.window.entries if talk else ())
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        return {
            **await super()._look_status(scope),
            "not_stored": sum(one.not_stored for one in self._conversations.of_owner(scope.user).values()),
            "cleanup_runs": self.cleanup_runs,
            "cleanups": list(self.cleanups),
            "chat": self.chat.name,
        }

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        """Compute the expiries of `expires_at: [[type, created_at], …]`."""
        if set(args) != {"expires_at"}:
            raise StoryError("inspect: formula takes `expires_at`: a list of [type, created_at]")
        try:
            ends = [expires_at(memory_type_of(kind), datetime.fromisoformat(made)) for kind, made in args["expires_at"]]
        except (InputError, TypeError, ValueError) as error:
            raise StoryError(f"inspect: formula expires_at: {error}") from error
        return [end and end.isoformat() for end in ends]
