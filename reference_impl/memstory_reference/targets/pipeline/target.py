"""The pipeline as a target of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, fields
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
    Target,
)
from memstory_reference.composition.embedders import MINILM, make_reranker
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.config import PipelineConfig
from memstory_reference.systems.pipeline.ingest.validation import checked_type
from memstory_reference.systems.pipeline.memory import MemoryChunk, RecallResult, Utterance
from memstory_reference.systems.pipeline.selection import Reranker
from memstory_reference.systems.pipeline.service import PipelineService
from memstory_reference.systems.pipeline.summary import BY_RULES
from memstory_reference.systems.topics.settings import default_topics
from memstory_reference.targets.environment_ports import EnvironmentPorts, environment_ports
from memstory_reference.targets.pipeline.values import (
    formula,
    hit,
    recalled_hit,
    receipt_item,
    result_data,
    stored_item,
)
from memstory_reference.targets.shared_embedders import EmbeddingFactory
from memstory_reference.targets.system_target import SystemTarget

CONFIG = tuple(one.name for one in fields(PipelineConfig))
OPTIONS = (*CONFIG, "reranker", "chat", "embedder", "ollama_host")
SEARCH_OPTIONS = ("session_id", "include_compressed", "rerank")
REVERSED = "reversed"
DEFAULT_SESSION = "default"

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *("add", "add.infer", "add.import", "add.batch_atomic", "get.id", "get.key", "list", "update", "context"),
        *("delete", "delete.reports_missing", "delete.scope", "search", "search.scores", "search.explain"),
        *("search.budget", "search.archived", "restart", "crash", "clock", "persistent", "dedup", "importance"),
        *("compression", "scope.user", "scope.session", "scope.required", "embedder.fixed", "llm.scripted"),
        *("job.compress", "job.import", "job.export", "job.recall", "job.reindex"),
        *("inspect.embedder", "inspect.model", "inspect.status", "inspect.log", "inspect.formula", "inspect.drift"),
        *("fault.embedder", "fault.model", "fault.store"),
        *(f"option.{name}" for name in OPTIONS),
    }
)


class ReversedReranker:
    """Turns the order round: for stories that look at what a re-ranker does, not at how good it is."""

    name = REVERSED

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(place) for place, _ in enumerate(texts)]


class PipelineTarget(SystemTarget):
    """One open pipeline memory; both of its stores lie in the case's workspace."""

    _service: PipelineService

    async def _open_system(self, workspace: Path) -> None:
        self._service = await open_pipeline(
            workspace,
            embedder=self._ports.embedder,
            chat=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            reranker=self._reranker,
            wrap=self._ports.with_faults,
        )

    async def close(self) -> None:
        self._log.detach()
        await self._service.close()

    async def about(self) -> Mapping[str, str]:
        return {
            "embedder": self._ports.embedder.model,
            "chat": self._ports.chat.name if self._has_model else BY_RULES,
            "store": f"sqlite + chromadb {version('chromadb')}",
        }

    async def settle(self) -> None:
        # A part that the story has taken down is told of by the step that needs it.
        is_expected = suppress(Refused) if self._ports.is_fault_injected else nullcontext()
        with is_expected, self._in_harness_words():
            await self._service.settle()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with self._in_harness_words():
            receipts = await self._service.ingest_all([_utterance(item, scope) for item in items], scope.user)
        return Receipt(items=[receipt_item(one) for row in receipts for one in row])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            found = await self._named(ref, scope)
        return hit(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        if query.min_score is not None:
            raise NotSupported("search.min_score")
        with self._in_harness_words():
            result = await self._recall(query, scope)
        return [recalled_hit(one, result.rerank) for one in result.memories]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        with self._in_harness_words():
            found = await self._service.memories(scope.user, kinds, None if scope.session else limit)
        of_scope = [one for one in found if scope.session in (None, one.session_id)]
        return [hit(one) for one in of_scope[:limit]]

    async def update(self, ref: Ref, item: Item, scope: Scope) -> Receipt:
        with self._in_harness_words():
            found = await self._named(ref, scope)
            changed = await self._service.update(found.id, item.text, scope.user) if found else None
        if changed is None:
            raise Refused(f"update: there is no memory {ref.id or ref.key!r}")
        return Receipt(items=[stored_item(changed, "updated")])

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            if ref.id is not None or ref.key is not None:
                found = await self._named(ref, scope)
                return bool(found and await self._service.delete([found.id], scope.user))
            if scope.session is None:
                return await self._service.forget(scope.user) > 0
            of_session = [one.id for one in await self._service.memories(scope.user) if one.session_id == scope.session]
            return bool(await self._service.delete(of_session, scope.user))

    async def context(self, query: Query, scope: Scope) -> str:
        with self._in_harness_words():
            return self._service.assemble(await self._recall(query, scope))

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        with self._in_harness_words():
            match job:
                case "compress":
                    return asdict(await self._service.compress(scope.user, **_only(job, args, ("until_quiet",))))
                case "import":
                    rows = await self._service.import_rows(_only(job, args, ("rows",)).get("rows", ()), scope.user)
                    return {"imported": len(rows), "ids": [one.id for one in rows]}
                case "export":
                    return await self._service.export_rows(scope.user)
                case "recall":
                    given = _only(job, args, ("query", "top_k", "token_budget", "memory_types", *SEARCH_OPTIONS))
                    return result_data(await self._service.recall(given.pop("query", ""), scope.user, **given))
                case "reindex":
                    return {"reindexed": await self._service.reindex(scope.user)}
                case _:
                    raise NotSupported(f"job.{job}")

    async def inspect(self, what: str, args: Mapping[str, Json], scope: Scope) -> Json:
        since = int(args.get("since") or 0)
        match what:
            case "embedder":
                return self._ports.embedder.data(since)
            case "model":
                return self._ports.chat.data(since)
            case "log":
                return self._log.data(since)
            case "formula":
                return formula(args)
            case "status":
                with self._in_harness_words():
                    return await self._service.status(scope.user)
            case "drift":
                return await self._service.centroid_drift(scope.user)
            case _:
                raise NotSupported(f"inspect.{what}")

    async def _recall(self, query: Query, scope: Scope) -> RecallResult:
        if query.where:
            raise NotSupported("search.where")
        options = _only("search", query.options, SEARCH_OPTIONS)
        if scope.session is not None:
            options.setdefault("session_id", scope.session)
        if query.top_k is not None:
            options["top_k"] = query.top_k
        if query.token_budget is not None:
            options["token_budget"] = query.token_budget
        return await self._service.recall(query.text, scope.user, memory_types=query.kinds, **options)

    async def _named(self, ref: Ref, scope: Scope) -> MemoryChunk | None:
        if ref.id is not None:
            return await self._service.get(ref.id, scope.user)
        return await self._service.preference(str(ref.key), scope.user)

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._config, self._reranker = _config(env.options), _reranker(env.options.get("reranker"))
        self._has_model = bool(env.model_rules) or env.options.get("chat", "offline") != "offline"
        return environment_ports(
            env,
            make_embedder=self._make_embedder,
            embedder=env.options.get("embedder", MINILM),
            chat=env.options.get("chat", "offline"),
            ollama_host=env.options.get("ollama_host", default_topics().ollama_host),
        )


class PipelineFactory(EmbeddingFactory):
    """Shares the loaded embedding model among the cases of one worker."""

    name: ClassVar[str] = "pipeline"
    spec: ClassVar[str | None] = "memstory_reference.targets.pipeline.target:PipelineFactory"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return PipelineTarget(self._embedders.make)


def _config(options: Mapping[str, Json]) -> PipelineConfig:
    foreign = [name for name in options if name not in OPTIONS]
    if foreign:
        raise InputError(f"options: unknown option {foreign[0]!r:.80}; known: {', '.join(OPTIONS)}")
    return PipelineConfig().changed({name: options[name] for name in CONFIG if name in options}, "options")


def _reranker(name: Json) -> Reranker | None:
    return ReversedReranker() if name == REVERSED else make_reranker(name)


def _utterance(item: Item, scope: Scope) -> Utterance:
    if item.key is not None:
        raise InputError("the pipeline finds the key of a preference itself; leave `key` out")
    unknown = set(item.metadata) - {"role", "source"}
    if unknown:
        raise InputError(f"metadata {min(unknown)!r} is unknown; allowed: role, source")
    return Utterance(
        text=item.text,
        session_id=scope.session or DEFAULT_SESSION,
        memory_type_hint=None if item.kind is None else checked_type("kind", item.kind),
        **item.metadata,
    )


def _only(what: str, args: Mapping[str, Json], allowed: Sequence[str]) -> dict[str, Json]:
    foreign = [name for name in args if name not in allowed]
    if foreign:
        raise StoryError(f"{what}: unknown argument {foreign[0]!r}; known: {', '.join(allowed)}")
    return dict(args)
