"""The pipeline as a target of the harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import cast

from memstory.contract.errors import Refused, UnavailableError
from memstory.contract.target import (
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    Ref,
    Scope,
    Tree,
)
from memstory_reference.adapters.faults import FaultyPort
from memstory_reference.composition.embedders import make_reranker
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.config import PipelineConfig
from memstory_reference.systems.pipeline.ingest.importing import export_row
from memstory_reference.systems.pipeline.ingest.planning import Vector
from memstory_reference.systems.pipeline.ingest.validation import checked_type
from memstory_reference.systems.pipeline.memory import MemoryChunk, RecallResult, Utterance
from memstory_reference.systems.pipeline.recall import NearestMemories
from memstory_reference.systems.pipeline.selection import Reranker
from memstory_reference.systems.pipeline.service import PipelineService
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts
from memstory_reference.targets.in_words import CorrectingInWords
from memstory_reference.targets.pipeline.values import (
    formula,
    hit,
    recalled_hit,
    receipt_item,
    result_data,
    stored_item,
)
from memstory_reference.targets.system_target import SystemFactory, SystemTarget, check_names

CONFIG = tuple(one.name for one in fields(PipelineConfig))
REVERSED, UNAVAILABLE = "reversed", "unavailable"
DEFAULT_SESSION = "default"


class ReversedReranker:
    """Turns the order round: for stories that look at what a re-ranker does, not at how good it is."""

    name = REVERSED

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(place) for place, _ in enumerate(texts)]


class UnavailableReranker:
    """A re-ranker that cannot be had, on any machine."""

    name = UNAVAILABLE

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        raise UnavailableError("the story has no re-ranker")


class _FaultyVectors(FaultyPort):
    """The vectors behind a switch; their garbage is that nothing is found."""

    async def nearest(self, owner: str, vector: Vector, k: int) -> Mapping[str, float]:
        await self._switch.pass_or_fail()
        found: Mapping[str, float] = {} if self._switch.garbles() else await self._inner.nearest(owner, vector, k)
        return found


class PipelineTarget(CorrectingInWords, SystemTarget[PipelineService]):
    """One open pipeline memory; both of its stores are in the case's workspace."""

    operations = frozenset(
        {
            *("add", "add.infer", "add.import", "add.batch_atomic", "get.id", "get.key", "list", "update", "context"),
            *("delete.about", "delete.durable", "update.about", "identifiers.spellings"),
            *("delete", "delete.reports_missing", "delete.scope", "search", "search.scores", "search.explain"),
            *("search.budget", "search.archived", "dedup", "importance", "compression", "scope.session"),
        }
    )
    options = (*CONFIG, "reranker", *PORT_OPTIONS)
    search_options = ("session_id", "include_compressed", "rerank")

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        given = {name: env.options[name] for name in CONFIG if name in env.options}
        self._config = PipelineConfig().changed(given, "options")
        reranker: Tree = env.options.get("reranker")
        bundled: Mapping[Tree, Callable[[], Reranker]] = {REVERSED: ReversedReranker, UNAVAILABLE: UnavailableReranker}
        self._reranker = bundled[reranker]() if reranker in bundled else make_reranker(reranker)
        return super()._ports_of(env)

    async def _open_system(self, workspace: Path) -> PipelineService:
        return await open_pipeline(
            workspace,
            embedder=self._ports.embedder,
            chat=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            reranker=self._reranker,
            wrap=lambda vectors: cast("NearestMemories", _FaultyVectors(vectors, self._ports.switches["store"])),
        )

    def _store_name(self) -> str:
        return "sqlite"

    async def _lost(self) -> int:
        return self._system.lost

    async def settle(self) -> None:
        # A part that the story has taken down is reported by the step that needs it.
        is_expected = suppress(Refused) if self._ports.is_fault_injected else nullcontext()
        with is_expected, self._in_harness_words():
            await self._system.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with self._in_harness_words():
            receipts = await self._system.ingest_all([_utterance(item, scope) for item in items], scope.user)
        return Receipt(items=[receipt_item(one) for row in receipts for one in row])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            found = await self._named(ref, scope)
        return hit(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        with self._in_harness_words():
            result = await self._recall(query, scope, by_score=True)
        return [recalled_hit(one, result.rerank) for one in result.memories]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        with self._in_harness_words():
            found = await self._system.memories(scope.user, kinds, None if scope.session else limit)
        of_scope = [one for one in found if scope.session in (None, one.session_id)]
        return [hit(one) for one in of_scope[:limit]]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with self._in_harness_words():
            found = await self._named(ref, scope)
            changed = await self._system.update(found.id, item.text, scope.user) if found else None
        if changed is None:
            raise Refused(f"update: there is no memory {ref.id or ref.key!r}")
        return Receipt(items=[stored_item(changed, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            if ref.id is not None or ref.key is not None:
                found = await self._named(ref, scope)
                return bool(found and await self._system.delete([found.id], scope.user, durable=ref.durable))
            if scope.session is None and not ref.durable:
                return await self._system.forget(scope.user) > 0
            every = await self._system.memories(scope.user, include_replaced=True)
            of_scope = [one.id for one in every if scope.session in (None, one.session_id)]
            return bool(await self._system.delete(of_scope, scope.user, durable=ref.durable))

    async def _ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        with self._in_harness_words():
            return [one.id for one in await self._system.about(things, scope.user)]

    async def context(self, query: Query, scope: Scope) -> str:
        with self._in_harness_words():
            return self._system.assemble(await self._recall(query, scope))

    async def _job_compress(self, scope: Scope, *, until_quiet: bool = False) -> Tree:
        return asdict(await self._system.compress(scope.user, until_quiet=until_quiet))

    async def _job_import(self, scope: Scope, *, rows: Tree = ()) -> Tree:
        imported = await self._system.import_rows(rows, scope.user)
        return {"imported": len(imported), "ids": [one.id for one in imported]}

    async def _job_export(self, scope: Scope) -> Tree:
        return await self._system.export_rows(scope.user)

    async def _job_snapshot(self, scope: Scope) -> Tree:
        return {"rows": await self._system.export_rows(scope.user)}

    async def _job_restore(self, scope: Scope, *, snapshot: Tree) -> Tree:
        return await self._job_import(scope, rows=snapshot)

    async def _job_recall(self, scope: Scope, *, query: str = "", **given: Tree) -> Tree:
        check_names("recall", given, ("top_k", "token_budget", "memory_types", *self.search_options))
        return result_data(await self._system.recall(query, scope.user, **given))

    async def _job_history(self, scope: Scope, *, key: str = "") -> Tree:
        return [export_row(one) for one in await self._system.history(key, scope.user)]

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"reindexed": await self._system.reindex(scope.user)}

    async def _look_status(self, scope: Scope) -> Tree:
        return await self._system.status(scope.user)

    async def _look_drift(self, scope: Scope) -> Tree:
        return await self._system.centroid_drift(scope.user)

    def _formula(self, args: Mapping[str, Tree]) -> Tree:
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
        return await self._system.recall(query.text, scope.user, memory_types=query.kinds, **options)

    async def _named(self, ref: Ref, scope: Scope) -> MemoryChunk | None:
        if ref.id is not None:
            return await self._system.get(ref.id, scope.user)
        return await self._system.preference(str(ref.key), scope.user)


class PipelineFactory(SystemFactory):
    """The pipeline memory: texts in chunks, weighed, routed, and recalled within a budget of tokens."""

    name = "pipeline"
    spec = "memstory_reference.targets.pipeline.target:PipelineFactory"
    target_class = PipelineTarget


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
