"""The manager memory by the interface of all six: one memory that is kept clean, and an agent for each session."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta

from memstory.contract.clock import Clock
from memstory.contract.errors import Refused
from memstory.contract.models import ChatModel
from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope, ToolCall, ToolSchema, Tree, Turn
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_owner
from memstory_reference.setting_rules import SQLITE
from memstory_reference.storage.recurring import Recurring
from memstory_reference.system_memory import (
    Conversations,
    CurrentSessions,
    ForgetResult,
    SystemMemory,
    engine_name,
    read_rows,
)
from memstory_reference.systems.manager.agent import ManagerAgent
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories.memory import Memory, MemoryType, statements
from memstory_reference.systems.manager.memories.migration import migrate_rows
from memstory_reference.systems.manager.memories.rows import DEFAULT_SESSION
from memstory_reference.systems.manager.memory_tools import SPECS, ManagerTools
from memstory_reference.systems.manager.values import (
    formula,
    found_hit,
    hit_of,
    memory_of_row,
    new_memory,
    outcome_of,
    receipt_item,
    types_of,
)

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
        await self._recurring.start(timedelta(seconds=self._manager.settings.cleanup_interval))

    async def clean_up(self) -> int:
        """Clean up once and tell of it, if anything was removed."""
        deleted = await self._manager.cleanup_expired()
        self.runs += 1
        if deleted:
            LOG.info("memory_cleanup deleted=%d", deleted)
            self.events.append({"event": "memory_cleanup", "deleted": deleted, "at": self._clock.now().isoformat()})
        return deleted


class ManagerMemory(SystemMemory):
    """A memory with three tools and an agent that talks. `open` before anything else."""

    operations = frozenset(
        {
            *("add", "add.verbatim", "add.exact", "add.key", "add.batch_atomic", "get.key", "get.id", "list", "update"),
            *("add.metadata", "add.metadata.lists"),
            *("search", "search.scores", "search.min_score", "search.where"),
            *("delete", "delete.reports_missing", "delete.scope", "delete.about", "delete.durable", "update.about"),
            "identifiers.spellings",
            *("chat", "chat.tools", "chat.window", "tool", "tool.schema"),
            *("dedup", "expiry", "expiry.read_filter", "scope.session"),
        }
    )
    counted = ("conversation", "fact", "context")

    def __init__(self, manager: MemoryManager, *, chat: ChatModel, clock: Clock, engine: str = SQLITE) -> None:
        self.manager = manager
        self._chat = chat
        self._engine = engine
        self._sessions = CurrentSessions(DEFAULT_SESSION)
        self._housekeeping = Housekeeping(manager, clock)
        self._conversations = Conversations(
            lambda owner, session: ManagerAgent(
                manager=manager, chat=chat, clock=clock, owner=owner, session=session, forget=self._forget
            )
        )

    @property
    def store_name(self) -> str:
        return engine_name(self._engine)

    async def open(self) -> None:
        """Clean up, and from now on every interval."""
        await self._housekeeping.start()

    async def close(self) -> None:
        """Stop cleaning up and release the store."""
        try:
            await self._housekeeping.stop()
        finally:
            await self.manager.close()

    async def owners(self) -> Sequence[str]:
        return await self.manager.owners()

    async def settle(self) -> None:
        await self._housekeeping.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._sessions.note(scope)
        stored = await self.manager.store_many(scope.user, [new_memory(item, scope) for item in items])
        return Receipt(items=[receipt_item(one.memory, outcome_of(one)) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        memory = await self._memory(ref, scope)
        return hit_of(memory) if memory else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        types = types_of(query.kinds)
        if len(types) > 1:
            raise InputError("a search is of one type or of all; name one kind, or none")
        found = await self.manager.search(
            scope.user,
            query.text,
            memory_type=types[0] if types else None,
            limit=query.top_k,
            min_score=query.min_score,
            where=query.where,
            session=scope.session,
        )
        return [found_hit(one) for one in found]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        found = await self.manager.memories(scope.user, types_of(kinds), session=scope.session, limit=limit)
        return [hit_of(memory) for memory in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = await self._memory(ref, scope)
        new = old and await self.manager.update(scope.user, old.id, item.text, item.metadata or None)
        if new is None:
            raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
        return Receipt(items=[receipt_item(new, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return bool(await self.manager.forget_all(scope.user, session=scope.session, durable=ref.durable))
        memory = await self._memory(ref, scope)
        return memory is not None and await self.manager.forget(scope.user, memory.id, durable=ref.durable)

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        return [hit_of(one) for one in await self.manager.with_repeats(scope.user, memory_id)]

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        return ForgetResult(gone=[hit_of(one) for one in await self._forget(scope.user, memory_id)])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        await self.manager.put(scope.user, read_rows(rows, memory_of_row))
        return ()

    async def say(self, text: str, scope: Scope) -> Turn:
        checked_owner(scope.user)
        session = checked_owner(self._sessions.note(scope), "session")
        return await self._conversations.of(scope.user, session).process(text)

    async def tools(self) -> Sequence[ToolSchema]:
        return SPECS

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await ManagerTools(self.manager, scope.user, self._sessions.note(scope), self._forget).call(name, args)

    async def _job_cleanup(self, _: Scope) -> Tree:
        return {"deleted": await self._housekeeping.clean_up()}

    async def _job_migrate(self, scope: Scope, *, rows: Tree = None) -> Tree:
        if not isinstance(rows, list | None):
            raise InputError(f"migrate: rows must be a list of objects, not {type(rows).__name__}")
        migration = migrate_rows(rows or ())
        await self.manager.put(scope.user, migration.memories)
        return {
            "migrated": len(migration.memories),
            "skipped": list(migration.skipped),
            "warnings": list(migration.warnings),
        }

    async def _look_window(self, scope: Scope) -> Tree:
        talk = self._conversations.of_owner(scope.user).get(self._sessions.of(scope) or DEFAULT_SESSION)
        return [
            {"role": entry.role, "content": entry.content, "timestamp": entry.timestamp.isoformat()}
            for entry in (talk.window.entries if talk else ())
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        return {
            "rows": await self.manager.count(scope.user),
            **{str(kind): await self.manager.count(scope.user, kind) for kind in MemoryType},
            "unreadable": await self.manager.unreadable(scope.user),
            "not_stored": sum(one.not_stored for one in self._conversations.of_owner(scope.user).values()),
            "cleanup_runs": self._housekeeping.runs,
            "cleanups": list(self._housekeeping.events),
            "embedder": self.manager.embedder_name,
            "chat": self._chat.name,
        }

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        return formula(args)

    async def _memory(self, ref: Ref, scope: Scope) -> Memory | None:
        if ref.id is not None:
            memory = await self.manager.get(scope.user, ref.id)
        elif ref.key is not None:
            memory = await self.manager.context_entry(scope.user, scope.session, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        is_meant = ref.kind is None or (memory is not None and memory.memory_type in types_of([ref.kind]))
        return memory if is_meant else None

    async def _forget(self, owner: str, memory_id: str) -> Sequence[Memory]:
        """Forget a memory with the turns that repeat it, in open conversations too; return what is gone."""
        gone = await self.manager.forget_saying(owner, memory_id)
        stated = [one for memory in gone[:1] for one in statements(memory)]
        for conversation in self._conversations.of_owner(owner).values():
            conversation.forget(stated)
        return gone
