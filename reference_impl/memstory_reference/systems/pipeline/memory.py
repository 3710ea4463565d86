"""The pipeline memory by the interface of all six."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from memstory.contract.errors import Refused
from memstory.contract.target import Hit, Item, Query, Receipt, Ref, Scope, ToolCall, ToolSchema, Tree, Turn
from memstory_reference.errors import InputError
from memstory_reference.setting_rules import SQLITE
from memstory_reference.system_memory import CorrectingInWords, ForgetResult, check_names
from memstory_reference.systems.pipeline.chunk import MemoryChunk, RecallResult, Utterance
from memstory_reference.systems.pipeline.ingest.importing import export_row
from memstory_reference.systems.pipeline.ingest.validation import checked_type
from memstory_reference.systems.pipeline.memory_tools import forget_with_repeats, memory_with_repeats
from memstory_reference.systems.pipeline.service import PipelineService
from memstory_reference.systems.pipeline.system import PipelineSystem
from memstory_reference.systems.pipeline.values import (
    formula,
    hit,
    recalled_hit,
    receipt_item,
    result_data,
    stored_item,
)

DEFAULT_SESSION = "default"


class PipelineMemory(CorrectingInWords):
    """An open pipeline, with the agent that talks for it."""

    operations = frozenset(
        {
            *("add", "add.infer", "add.import", "add.batch_atomic", "get.id", "get.key", "list", "update", "context"),
            *("delete.about", "delete.durable", "update.about", "identifiers.spellings"),
            *("delete", "delete.reports_missing", "delete.scope", "search", "search.scores", "search.explain"),
            *("chat", "chat.tools", "chat.window", "tool", "tool.schema"),
            *("search.budget", "search.archived", "dedup", "importance", "compression", "scope.session"),
        }
    )
    counted = ("procedural", "semantic", "episodic", "working", "archived", "replaced")
    search_options = ("session_id", "include_compressed", "rerank")

    def __init__(self, system: PipelineSystem, store_name: str = SQLITE) -> None:
        self._system = system
        self._store_name = store_name

    @property
    def store_name(self) -> str:
        return self._store_name

    async def close(self) -> None:
        await self._system.close()

    async def owners(self) -> Sequence[str]:
        return await self._service.owners()

    async def count_lost(self) -> int:
        return self._service.count_lost()

    async def settle(self) -> None:
        await self._service.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        receipts = await self._service.ingest_all([_utterance(item, scope) for item in items], scope.user)
        return Receipt(items=[receipt_item(one) for row in receipts for one in row])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._find(ref, scope)
        return hit(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        result = await self._recall(query, scope, by_score=True)
        return [recalled_hit(one, result.rerank) for one in result.memories]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        found = await self._service.memories(scope.user, kinds, None if scope.session else limit)
        of_scope = [one for one in found if scope.session in (None, one.session_id)]
        return [hit(one) for one in of_scope[:limit]]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        found = await self._find(ref, scope)
        changed = await self._service.update(found.id, item.text, scope.user) if found else None
        if changed is None:
            raise Refused(f"update: there is no memory {ref.id or ref.key!r}")
        return Receipt(items=[stored_item(changed, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        if ref.id is not None or ref.key is not None:
            found = await self._find(ref, scope)
            return bool(found and await self._service.delete([found.id], scope.user, durable=ref.durable))
        if scope.session is None and not ref.durable:
            return await self._service.forget(scope.user) > 0
        every = await self._service.memories(scope.user, include_replaced=True)
        of_scope = [one.id for one in every if scope.session in (None, one.session_id)]
        return bool(await self._service.delete(of_scope, scope.user, durable=ref.durable))

    async def ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        return [one.id for one in await self._service.about(things, scope.user)]

    async def context(self, query: Query, scope: Scope) -> str:
        return self._service.assemble(await self._recall(query, scope))

    async def repeats(self, memory_id: str, scope: Scope) -> Sequence[Hit]:
        return [hit(one) for one in await memory_with_repeats(self._service, scope.user, memory_id)]

    async def list_archived(self, scope: Scope) -> Sequence[Hit]:
        every = await self._service.memories(scope.user, include_replaced=True)
        living = {one.id for one in await self._service.memories(scope.user) if not one.is_archived}
        return [hit(one) for one in every if one.id not in living]

    async def forget(self, memory_id: str, scope: Scope) -> ForgetResult:
        gone = await forget_with_repeats(self._service, scope.user, memory_id)
        self._system.forget_windows(scope.user)
        return ForgetResult(gone=[hit(one) for one in gone])

    async def export_rows(self, scope: Scope) -> Sequence[Mapping[str, Tree]]:
        return await self._service.export_rows(scope.user)

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        await self._service.import_rows(rows, scope.user)
        return ()

    async def say(self, text: str, scope: Scope) -> Turn:
        return await self._system.say(text, owner=scope.user, session=scope.session or DEFAULT_SESSION)

    async def tools(self) -> Sequence[ToolSchema]:
        return self._system.tools()

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        session = scope.session or DEFAULT_SESSION
        return await self._system.call_tool(name, args, owner=scope.user, session=session)

    async def _job_compress(self, scope: Scope, *, until_quiet: bool = False) -> Tree:
        return asdict(await self._service.compress(scope.user, until_quiet=until_quiet))

    async def _job_import(self, scope: Scope, *, rows: Tree = ()) -> Tree:
        imported = await self._service.import_rows(rows, scope.user)
        return {"imported": len(imported), "ids": [one.id for one in imported]}

    async def _job_export(self, scope: Scope) -> Tree:
        return await self._service.export_rows(scope.user)

    async def _job_snapshot(self, scope: Scope) -> Tree:
        return {"rows": await self._service.export_rows(scope.user)}

    async def _job_restore(self, scope: Scope, *, snapshot: Tree) -> Tree:
        return await self._job_import(scope, rows=snapshot)

    async def _job_recall(self, scope: Scope, *, query: str = "", **given: Tree) -> Tree:
        check_names("recall", given, ("top_k", "token_budget", "memory_types", *self.search_options))
        return result_data(await self._service.recall(query, scope.user, **given))

    async def _job_history(self, scope: Scope, *, key: str = "") -> Tree:
        return [export_row(one) for one in await self._service.history(key, scope.user)]

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"reindexed": await self._service.reindex(scope.user)}

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._service.status(scope.user)

    async def _look_drift(self, scope: Scope) -> Tree:
        return await self._service.centroid_drift(scope.user)

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        return formula(args)

    async def _recall(self, query: Query, scope: Scope, *, by_score: bool = False) -> RecallResult:
        self._check_query(query)
        options: dict[str, Tree] = {**query.options, "by_score": by_score}
        if scope.session is not None:
            options.setdefault("session_id", scope.session)
        if query.top_k is not None:
            options["top_k"] = query.top_k
        if query.token_budget is not None:
            options["token_budget"] = query.token_budget
        return await self._service.recall(query.text, scope.user, memory_types=query.kinds, **options)

    async def _find(self, ref: Ref, scope: Scope) -> MemoryChunk | None:
        if ref.id is not None:
            return await self._service.get(ref.id, scope.user)
        return await self._service.preference(str(ref.key), scope.user)

    @property
    def _service(self) -> PipelineService:
        return self._system.memory


def _utterance(item: Item, scope: Scope) -> Utterance:
    if item.key is not None:
        raise InputError("the pipeline finds the key of a preference itself; leave `key` out")
    unknown = set(item.metadata) - {"role", "source"}
    if unknown:
        raise InputError(f"metadata {min(unknown)!r} is unknown; allowed: role, source")
    given: Mapping[str, Tree] = item.metadata
    return Utterance(
        text=item.text,
        session_id=scope.session or DEFAULT_SESSION,
        memory_type_hint=None if item.kind is None else checked_type(item.kind, "kind"),
        **given,
    )
