"""The manager system as a target of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from memstory.errors import NotSupported, Refused, StoryError
from memstory.target import (
    Capability,
    Environment,
    Hit,
    Item,
    Json,
    Query,
    Receipt,
    Ref,
    Scope,
    ToolCall,
    ToolSchema,
    Turn,
)
from memstory_reference.adapters.folder_copy import copy_closed
from memstory_reference.composition.manager import open_manager
from memstory_reference.errors import InputError
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories.memory import Memory
from memstory_reference.systems.manager.memories.migration import migrated
from memstory_reference.systems.manager.memories.rows import DEFAULT_SESSION
from memstory_reference.systems.manager.system import ManagerSystem
from memstory_reference.targets.environment_ports import EnvironmentPorts, MakeEmbedder, environment_ports
from memstory_reference.targets.manager.options import OPTIONS, manager_settings
from memstory_reference.targets.manager.values import (
    formula,
    found_hit,
    hit_of,
    new_memory,
    outcome_of,
    receipt_item,
    tool_call,
    types_of,
)
from memstory_reference.targets.shared_embedders import EmbeddingFactory
from memstory_reference.targets.system_target import SystemTarget

FOLDER = "memory"

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.verbatim", "add.exact", "add.key", "add.batch_atomic", "get.key", "get.id", "list", "update"),
        *("search", "search.scores", "search.min_score", "search.where"),
        *("delete", "delete.reports_missing", "delete.scope"),
        *("chat", "chat.tools", "chat.window", "tool", "tool.schema"),
        *("restart", "crash", "clock", "persistent", "dedup", "expiry", "expiry.read_filter"),
        *("scope.user", "scope.required", "scope.session", "embedder.fixed", "llm.scripted"),
        *("inspect.embedder", "inspect.model", "inspect.status", "inspect.log", "inspect.window", "inspect.formula"),
        *("job.cleanup", "job.migrate", "job.backup", "fault.embedder", "fault.model", "fault.store"),
        *(f"option.{name}" for name in OPTIONS),
    }
)


class ManagerTarget(SystemTarget):
    """One open manager system; its store lies in the case's workspace."""

    _system: ManagerSystem

    def __init__(self, make_embedder: MakeEmbedder) -> None:
        super().__init__(make_embedder)
        self._sessions: dict[str, str] = {}

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        settings = manager_settings(env.options)
        return environment_ports(
            env,
            make_embedder=self._make_embedder,
            embedder=settings.embedding_model,
            chat=settings.chat,
            ollama_host=settings.ollama_host,
        )

    async def _open_system(self, workspace: Path) -> None:
        self._system = await self._opened(workspace / FOLDER)

    async def close(self) -> None:
        self._log.detach()
        await self._system.close()

    async def about(self) -> Mapping[str, str]:
        return {
            "embedder": self._ports.embedder.model,
            "chat": self._ports.chat.name,
            "store": f"chromadb {version('chromadb')}",
        }

    async def settle(self) -> None:
        await self._system.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        self._note_session(scope)
        with self._in_harness_words():
            stored = await self._manager.store_many(scope.user, [new_memory(item, scope) for item in items])
        return Receipt(items=[receipt_item(one.memory, outcome_of(one)) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            memory = await self._memory(ref, scope)
        return hit_of(memory) if memory else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        if query.token_budget is not None:
            raise NotSupported("search.budget")
        if query.options:
            raise StoryError(f"search: manager knows no option {next(iter(query.options))!r} of a search")
        with self._in_harness_words():
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
        with self._in_harness_words():
            found = await self._manager.memories(scope.user, types_of(kinds), session=scope.session, limit=limit)
        return [hit_of(memory) for memory in found]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with self._in_harness_words():
            old = await self._memory(ref, scope)
            new = old and await self._manager.update(scope.user, old.id, item.text, item.metadata or None)
        if new is None:
            raise Refused(f"update: nothing is remembered under {ref.key or ref.id!r}")
        return Receipt(items=[receipt_item(new, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            if ref.id is None and ref.key is None:
                return bool(await self._manager.forget_all(scope.user, session=scope.session))
            memory = await self._memory(ref, scope)
            return memory is not None and await self._manager.forget(scope.user, memory.id)

    async def say(self, text: str, scope: Scope) -> Turn:
        session = self._note_session(scope)
        with self._in_harness_words():
            answer = await self._system.say(text, owner=scope.user, session=session)
        calls = [tool_call(one.request.name, one.request.arguments, one.called) for one in answer.used]
        return Turn(answer=answer.answer, tool_calls=calls)

    async def tools(self) -> Sequence[ToolSchema]:
        return [
            ToolSchema(name=spec.name, description=spec.description, parameters=spec.parameters)
            for spec in self._system.tools()
        ]

    async def tool(self, name: str, args: Mapping[str, Json], scope: Scope, caller: str | None = None) -> ToolCall:
        with self._in_harness_words():
            called = await self._system.call_tool(name, args, owner=scope.user, session=self._note_session(scope))
        return tool_call(name, args, called)

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        with self._in_harness_words():
            match job:
                case "cleanup":
                    _check_names(job, args, ())
                    return {"deleted": await self._system.housekeeping.clean_up()}
                case "migrate":
                    _check_names(job, args, ("rows",))
                    return await self._migrate(args.get("rows") or (), scope)
                case "backup":
                    _check_names(job, args, ("folder",))
                    return await self._back_up(str(args.get("folder", "backup")), scope)
                case _:
                    raise NotSupported(f"job.{job}")

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        if what == "formula":
            return formula(args)
        _check_names(f"inspect {what}", args, ("since",))
        since = args.get("since", 0)
        if not isinstance(since, int) or isinstance(since, bool):
            raise StoryError(f"inspect: since is {since!r}; allowed: the number of a call or message")
        match what:
            case "embedder":
                return self._ports.embedder.data(since)
            case "model":
                return self._ports.chat.data(since)
            case "log":
                return self._log.data(since)
            case "window":
                session = scope.session or self._sessions.get(scope.user, DEFAULT_SESSION)
                return [
                    {"role": entry.role, "content": entry.content, "timestamp": entry.timestamp.isoformat()}
                    for entry in self._system.window(scope.user, session)
                ]
            case "status":
                with self._in_harness_words():
                    return await self._system.status(scope.user)
            case _:
                raise NotSupported(f"inspect.{what}")

    async def _migrate(self, rows: Sequence[Mapping[str, Json]], scope: Scope) -> Json:
        migration = migrated(rows)
        await self._manager.put(scope.user, migration.memories)
        return {
            "migrated": len(migration.memories),
            "skipped": list(migration.skipped),
            "warnings": list(migration.warnings),
        }

    async def _back_up(self, name: str, scope: Scope) -> Json:
        """Close, copy, open the copy and see that it holds the same, go on with the original."""
        copy = Path(self._env.workspace) / name
        original = await self._manager.memories(scope.user)
        await self._system.close()
        try:
            copy_closed(self._folder, copy)
            opened = await self._opened(copy)
            copied = await opened.manager.memories(scope.user)
            await opened.close()
        finally:
            self._system = await self._opened(self._folder)
        return {"memories": len(copied), "equal": copied == original}

    async def _opened(self, folder: Path) -> ManagerSystem:
        return await open_manager(
            manager_settings(self._env.options),
            folder=folder,
            embedder=self._ports.embedder,
            chat=self._ports.chat,
            clock=self._clock,
            new_id=self._ports.new_id,
            wrap=self._ports.with_faults,
        )

    async def _memory(self, ref: Ref, scope: Scope) -> Memory | None:
        if ref.id is not None:
            memory = await self._manager.get(scope.user, ref.id)
        elif ref.key is not None:
            memory = await self._manager.context_entry(scope.user, scope.session, ref.key)
        else:
            raise InputError("name one memory, by id or by key")
        is_meant = ref.kind is None or (memory is not None and memory.memory_type in types_of([ref.kind]))
        return memory if is_meant else None

    def _note_session(self, scope: Scope) -> str:
        """Return the session in which something happens, and remember it as the user's present one."""
        self._sessions[scope.user] = scope.session or self._sessions.get(scope.user, DEFAULT_SESSION)
        return self._sessions[scope.user]

    @property
    def _manager(self) -> MemoryManager:
        return self._system.manager

    @property
    def _folder(self) -> Path:
        return Path(self._env.workspace) / FOLDER


class ManagerFactory(EmbeddingFactory):
    """Makes manager targets that share one loaded embedding model."""

    name: ClassVar[str] = "manager"
    spec: ClassVar[str | None] = "memstory_reference.targets.manager.target:ManagerFactory"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> ManagerTarget:
        return ManagerTarget(self._embedders.make)


def _check_names(what: str, args: Mapping[str, Json], known: Sequence[str]) -> None:
    for name in args:
        if name not in known:
            allowed = ", ".join(known) or "none"
            raise StoryError(f"{what}: unknown argument {name!r}; allowed: {allowed}")
