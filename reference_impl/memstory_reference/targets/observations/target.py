"""The observations system as a target of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
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
    ReceiptItem,
    Ref,
    Scope,
    Target,
)
from memstory_reference.composition.embedders import MINILM
from memstory_reference.composition.observations import open_observations
from memstory_reference.errors import InputError
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ordering import Ranked
from memstory_reference.systems.observations.quality import rank, similarity_of_l2
from memstory_reference.systems.observations.research import LocalCorpus, Passage, ResearchLoop
from memstory_reference.systems.observations.service import ObservationService, Stored
from memstory_reference.systems.topics.settings import default_topics
from memstory_reference.targets.environment_ports import EnvironmentPorts, environment_ports
from memstory_reference.targets.shared_embedders import EmbeddingFactory
from memstory_reference.targets.system_target import SystemTarget

KIND = "observation"
BY_RULES = "rules (deterministic stand-in)"
CONFIG = ("top_k", "min_sim", "rating_min", "rating_max")
OPTIONS = (*CONFIG, "chat", "embedder", "ollama_host")

CAPABILITIES: frozenset[Capability] = frozenset(
    {
        *(
            "add",
            "add.key",
            "add.verbatim",
            "get.id",
            "get.key",
            "list",
            "delete",
            "delete.reports_missing",
            "feedback",
            "context",
        ),
        *("search", "search.scores", "search.lexical", "search.hybrid", "search.min_score", "search.explain"),
        *("restart", "crash", "clock", "persistent", "scope.user", "scope.required", "rank.quality", "unicode_lexical"),
        *("embedder.fixed", "llm.scripted", "inspect.embedder", "inspect.model", "inspect.status", "inspect.log"),
        *("inspect.formula", "job.compress_and_store", "job.reindex", "job.research"),
        *("fault.embedder", "fault.model", "fault.store"),
        *(f"option.{name}" for name in OPTIONS),
    }
)


class ObservationsTarget(SystemTarget):
    """One open observations memory; both indexes lie in the case's workspace."""

    _service: ObservationService

    async def _open_system(self, workspace: Path) -> None:
        self._service = await open_observations(
            workspace,
            embedder=self._ports.embedder,
            chat=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            wrap=self._ports.with_faults,
        )

    async def close(self) -> None:
        self._log.detach()
        await self._service.close()

    async def about(self) -> Mapping[str, str]:
        return {
            "embedder": self._ports.embedder.model,
            "chat": self._ports.chat.name if self._has_model else BY_RULES,
            "store": f"sqlite fts5 + chromadb {version('chromadb')}",
        }

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with self._in_harness_words():
            observations = [self._observation(item) for item in items]
            stored = await self._service.store(observations, scope.user)
        return Receipt(items=[_receipt_item(one) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            found = await self._service.get(_id(ref), scope.user)
        return _hit(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        _check_kinds(query.kinds)
        if query.where:
            raise NotSupported("search.where")
        if query.token_budget is not None:
            raise NotSupported("search.budget")
        if query.options:
            raise StoryError(f"search: observations have no option {next(iter(query.options))!r} for a search")
        with self._in_harness_words():
            found = await self._service.search(query.text, scope.user, query.top_k)
        floor = float("-inf") if query.min_score is None else query.min_score
        return [_ranked_hit(entry) for entry in found if entry.rank.rank >= floor]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        _check_kinds(kinds)
        with self._in_harness_words():
            return [_hit(one) for one in await self._service.recent(scope.user, limit)]

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            return bool(await self._service.delete([_id(ref)], scope.user))

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        with self._in_harness_words():
            return await self._service.rate(_id(ref), value, scope.user)

    async def context(self, query: Query, scope: Scope) -> str:
        with self._in_harness_words():
            return await self._service.get_context(query.text, scope.user, query.top_k)

    async def run(self, job: str, args: Mapping[str, Json], scope: Scope) -> Json:
        with self._in_harness_words():
            match job:
                case "compress_and_store":
                    return _told(await self._service.compress_and_store(**args, owner=scope.user))
                case "reindex":
                    return {"reindexed": await self._service.reindex(scope.user)}
                case "research":
                    return await self._research(dict(args), scope)
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
            case "status":
                with self._in_harness_words():
                    return dict(await self._service.status(scope.user))
            case "formula":
                return _formula(args)
            case _:
                raise NotSupported(f"inspect.{what}")

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        self._config = _config(env.options)
        self._has_model = bool(env.model_rules) or "chat" in env.options
        defaults = default_topics()
        return environment_ports(
            env,
            make_embedder=self._make_embedder,
            embedder=env.options.get("embedder", MINILM),
            chat=env.options.get("chat", "offline"),
            ollama_host=env.options.get("ollama_host", defaults.ollama_host),
        )

    def _observation(self, item: Item) -> Observation:
        if item.kind not in (None, KIND):
            raise InputError(f"kind {item.kind!r} is unknown; allowed: {KIND}")
        given = dict(item.metadata)
        observation = Observation(
            id=item.key or self._ports.new_id(),
            title=str(given.pop("title", "")) or item.text[:80],
            narrative=item.text,
            facts=tuple(given.pop("facts", ())),
            task=str(given.pop("task", item.text)),
            task_type=given.pop("task_type", "research"),
            final_score=given.pop("score", None),
            timestamp=self._clock.now(),
        )
        if given:
            raise InputError(
                f"metadata {next(iter(given))!r} is unknown; allowed: title, facts, task, task_type, score"
            )
        return observation

    async def _research(self, args: dict[str, Json], scope: Scope) -> Json:
        corpus = LocalCorpus(Passage(id=one["id"], text=one["text"]) for one in args.pop("corpus", ()))
        loop = ResearchLoop(self._service, corpus, self._ports.chat if self._has_model else None)
        run = await loop.run(args.pop("task"), scope.user, **args)
        return {
            "plan": {"prior_work": list(run.plan.prior_work), "queries": list(run.plan.queries)},
            "context": run.context,
            "fetched": list(run.fetched),
            "spared": list(run.spared),
            "output": run.output,
            **_told(run.stored),
        }


class ObservationsFactory(EmbeddingFactory):
    """Shares the loaded embedding model among the cases of one worker."""

    name: ClassVar[str] = "observations"
    spec: ClassVar[str | None] = "memstory_reference.targets.observations.target:ObservationsFactory"

    def capabilities(self, options: Mapping[str, Json]) -> frozenset[Capability]:
        return CAPABILITIES

    def target(self) -> Target:
        return ObservationsTarget(self._embedders.make)


def _config(options: Mapping[str, Json]) -> ObservationsConfig:
    foreign = [name for name in options if name not in OPTIONS]
    if foreign:
        raise InputError(f"options: unknown option {foreign[0]!r:.80}; known: {', '.join(OPTIONS)}")
    return ObservationsConfig().changed({name: options[name] for name in CONFIG if name in options}, "options")


def _check_kinds(kinds: Sequence[str]) -> None:
    unknown = set(kinds) - {KIND}
    if unknown:
        raise Refused(f"kind {min(unknown)!r} is unknown; allowed: {KIND}")


def _id(ref: Ref) -> str:
    identifier = ref.id or ref.key
    if not identifier:
        raise InputError("an observation is named by the id of its run")
    return identifier


def _hit(observation: Observation) -> Hit:
    return Hit(
        id=observation.id,
        text=observation.narrative,
        kind=KIND,
        key=observation.id,
        created_at=observation.timestamp.isoformat(),
        metadata={
            "title": observation.title,
            "facts": list(observation.facts),
            "task": observation.task,
            "task_type": observation.task_type,
            "score": observation.final_score,
            "rating": observation.rating,
        },
    )


def _ranked_hit(entry: Ranked) -> Hit:
    plain = _hit(entry.observation)
    return Hit(
        id=plain.id,
        text=plain.text,
        score=entry.rank.rank,
        kind=plain.kind,
        key=plain.key,
        created_at=plain.created_at,
        metadata=plain.metadata,
        explain={**asdict(entry.rank), "by_keyword": entry.by_keyword},
    )


def _receipt_item(stored: Stored) -> ReceiptItem:
    return ReceiptItem(
        id=stored.observation.id,
        text=stored.observation.narrative,
        outcome=stored.outcome,
        reason="this run is stored already" if stored.outcome == "skipped" else None,
        kind=KIND,
        key=stored.observation.id,
    )


def _told(stored: Stored) -> dict[str, Json]:
    observation = stored.observation
    return {
        "outcome": stored.outcome,
        "by": stored.by,
        "warnings": list(stored.warnings),
        "id": observation.id,
        "title": observation.title,
        "narrative": observation.narrative,
        "facts": list(observation.facts),
    }


def _formula(args: Mapping[str, Json]) -> Json:
    if "rank" in args:
        return [rank(*row).rank for row in args["rank"]]
    if "similarity" in args:
        return [similarity_of_l2(distance) for distance in args["similarity"]]
    raise StoryError("inspect: formula takes `rank` ([sim, score, rating] rows) or `similarity` (distances)")
