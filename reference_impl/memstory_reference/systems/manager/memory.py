"""The manager memory by the interface of all six."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope, ToolCall, ToolSchema, Tree, Turn
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import SQLITE
from memstory_reference.system_memory import CorrectingInWords, CurrentSessions, ForgetResult, engine_name, read_rows
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories.memory import Memory
from memstory_reference.systems.manager.memories.migration import migrate_rows
from memstory_reference.systems.manager.memories.rows import DEFAULT_SESSION
from memstory_reference.systems.manager.system import ManagerSystem
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


class ManagerMemory(CorrectingInWords):
    """An open manager system."""

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

    def __init__(self, system: ManagerSystem, engine: str = SQLITE) -> None:
        self._engine = engine
        self._system = system
        self._sessions = CurrentSessions(DEFAULT_SESSION)

    @property
    def store_name(self) -> str:
        return engine_name(self._engine)

    async def close(self) -> None:
        await self._system.close()

    async def owners(self) -> Sequence[str]:
        return await self._manager.owners()

    async def settle(self) -> None:
        await self._system.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._sessions.note(scope)
        stored = await self._manager.store_many(scope.user, [new_memory(item, scope) for item in items])
        return Receipt(items=[receipt_item(one.memory, outcome_of(one)) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        memory = await self._memory(ref, scope)
        return hit_of(memory) if memory else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        self._check_query(query)
        types = types_of(query.kinds)
        if len(types) > 1:
            raise InputError("a search is of one type or of all; name one kind, or none")
        found = await self._manager.search(
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
        found = await self._manager.memories(scope.user, types_of(kinds), session=scope.session, limit=limit)
        return [hit_of(memory) for memory in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        old = await self._memory(ref, scope)
        new = old and await self._manager.update(scope.user, old.id, item.text, item.metadata or None)
        if new is None:
            raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
        return Receipt(items=[receipt_item(new, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is None and ref.key is None:
            return bool(await self._manager.forget_all(scope.user, session=scope.session, durable=ref.durable))
        memory = await self._memory(ref, scope)
        return memory is not None and await self._manager.forget(scope.user, memory.id, durable=ref.durable)

    async def ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        return [one.id for one in await self._manager.about(scope.user, things)]

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        return [hit_of(one) for one in await self._manager.with_repeats(scope.user, memory_id)]

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        return ForgetResult(gone=[hit_of(one) for one in await self._system.forget(scope.user, memory_id)])

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        await self._manager.put(scope.user, read_rows(rows, memory_of_row))
        return ()

    async def say(self, text: str, scope: Scope) -> Turn:
        session = self._sessions.note(scope)
        return await self._system.say(text, owner=scope.user, session=session)

    async def tools(self) -> Sequence[ToolSchema]:
        return list(self._system.tools())

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await self._system.call_tool(name, args, owner=scope.user, session=self._sessions.note(scope))

    async def _job_cleanup(self, _: Scope) -> Tree:
        return {"deleted": await self._system.housekeeping.clean_up()}

    async def _job_migrate(self, scope: Scope, *, rows: Tree = None) -> Tree:
        if not isinstance(rows, list | None):
            raise InputError(f"migrate: rows must be a list of objects, not {type(rows).__name__}")
        migration = migrate_rows(rows or ())
        await self._manager.put(scope.user, migration.memories)
        return {
            "migrated": len(migration.memories),
            "skipped": list(migration.skipped),
            "warnings": list(migration.warnings),
        }

    async def _look_window(self, scope: Scope) -> Tree:
        session = self._sessions.of(scope) or DEFAULT_SESSION
        return [
            {"role": entry.role, "content": entry.content, "timestamp": entry.timestamp.isoformat()}
            for entry in self._system.window(scope.user, session)
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._system.status(scope.user)

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        return formula(args)

    async def _memory(self, ref: Ref, scope: Scope) -> Memory | None:
        if ref.id is not None:
            memory = await self._manager.get(scope.user, ref.id)
        elif ref.key is not None:
            memory = await self._manager.context_entry(scope.user, scope.session, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        is_meant = ref.kind is None or (memory is not None and memory.memory_type in types_of([ref.kind]))
        return memory if is_meant else None

    @property
    def _manager(self) -> MemoryManager:
        return self._system.manager
