"""The observations system as a target of the harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

from memstory.contract.errors import Refused, StoryError
from memstory.contract.target import (
    Environment,
    Hit,
    Item,
    Query,
    Receipt,
    ReceiptItem,
    Ref,
    Scope,
    Tree,
)
from memstory_reference.composition.observations import open_observations
from memstory_reference.errors import InputError
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ordering import RankedObservation
from memstory_reference.systems.observations.quality import rank, similarity
from memstory_reference.systems.observations.research import LocalCorpus, Passage, ResearchLoop
from memstory_reference.systems.observations.service import ObservationService, StoredObservation
from memstory_reference.targets.environment_ports import PORT_OPTIONS, EnvironmentPorts
from memstory_reference.targets.in_words import ForgettingInWords
from memstory_reference.targets.system_target import SystemFactory, SystemTarget

KIND = "observation"
CONFIG = tuple(ObservationsConfig.rules)


class ObservationsTarget(ForgettingInWords, SystemTarget[ObservationService]):
    """One open observations memory; both indexes are in the case's workspace."""

    operations = frozenset(
        {
            *("add", "add.key", "add.verbatim", "get.id", "get.key", "list", "delete", "delete.reports_missing"),
            *("delete.about", "delete.durable", "identifiers.spellings"),
            *("feedback", "context", "rank.quality", "unicode_lexical"),
            *("search", "search.scores", "search.lexical", "search.hybrid", "search.min_score", "search.explain"),
        }
    )
    options = (*CONFIG, *PORT_OPTIONS)

    def _ports_of(self, env: Environment) -> EnvironmentPorts:
        given = {name: env.options[name] for name in CONFIG if name in env.options}
        self._config = ObservationsConfig().changed(given, "options")
        return super()._ports_of(env)

    async def _open_system(self, workspace: Path) -> ObservationService:
        return await open_observations(
            workspace,
            embedder=self._ports.embedder,
            chat=self._ports.chat if self._has_model else None,
            clock=self._clock,
            new_id=self._ports.new_id,
            config=self._config,
            wrap=self._ports.with_faults,
        )

    @property
    def _has_model(self) -> bool:
        # The stand-in is a model too where a story names it.
        return bool(self._env.model_rules) or "chat" in self._env.options

    def _store_name(self) -> str:
        return f"sqlite fts5 + chromadb {version('chromadb')}"

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        with self._in_harness_words():
            observations = [self._observation(item) for item in items]
            stored = await self._system.store(observations, scope.user)
        return Receipt(items=[_receipt_item(one) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        with self._in_harness_words():
            found = await self._system.get(_id(ref), scope.user)
        return _hit(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        _check_kinds(query.kinds)
        self._check_query(query)
        with self._in_harness_words():
            found = await self._system.search(query.text, scope.user, query.top_k)
        floor = float("-inf") if query.min_score is None else query.min_score
        return [_ranked_hit(entry) for entry in found if entry.rank.rank >= floor]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        _check_kinds(kinds)
        with self._in_harness_words():
            return [_hit(one) for one in await self._system.recent(scope.user, limit)]

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        with self._in_harness_words():
            return bool(await self._system.delete([_id(ref)], scope.user, durable=ref.durable))

    async def _ids_about(self, things: Sequence[str], scope: Scope) -> Sequence[str]:
        with self._in_harness_words():
            return [one.id for one in await self._system.about(things, scope.user)]

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        with self._in_harness_words():
            return await self._system.rate(_id(ref), value, scope.user)

    async def context(self, query: Query, scope: Scope) -> str:
        with self._in_harness_words():
            return await self._system.get_context(query.text, scope.user, query.top_k)

    async def _job_compress_and_store(
        self,
        scope: Scope,
        *,
        task: str,
        output: str,
        task_type: str = "research",
        final_score: float | None = None,
        run_id: str | None = None,
        sources: Sequence[str] = (),
    ) -> Tree:
        stored = await self._system.compress_and_store(
            task=task,
            output=output,
            owner=scope.user,
            task_type=task_type,
            final_score=final_score,
            run_id=run_id,
            sources=sources,
        )
        return _stored_data(stored)

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"reindexed": await self._system.reindex(scope.user)}

    async def _job_research(
        self,
        scope: Scope,
        *,
        task: str,
        corpus: Sequence[Mapping[str, Tree]] = (),
        run_id: str | None = None,
        task_type: str = "research",
        final_score: float | None = None,
    ) -> Tree:
        passages = LocalCorpus(Passage(id=one["id"], text=one["text"]) for one in corpus)
        loop = ResearchLoop(self._system, passages, self._ports.chat if self._has_model else None)
        run = await loop.run(task, scope.user, run_id=run_id, task_type=task_type, final_score=final_score)
        return {
            "plan": {"prior_work": list(run.plan.prior_work), "queries": list(run.plan.queries)},
            "context": run.context,
            "fetched": list(run.fetched),
            "spared": list(run.spared),
            "output": run.output,
            **(_stored_data(run.stored) if run.stored else {"outcome": "skipped"}),
        }

    async def _look_status(self, scope: Scope) -> Tree:
        return dict(await self._system.status(scope.user))

    def _formula(self, args: Mapping[str, Tree]) -> Tree:
        match dict(args):
            case {"rank": rows, **more} if not more:
                return [rank(*row).rank for row in rows]
            case {"similarity": distances, **more} if not more:
                return [similarity(distance) for distance in distances]
        raise StoryError(
            "inspect: formula takes `rank`, rows of [sim, score, rating], or `similarity`, squared distances"
        )

    def _observation(self, item: Item) -> Observation:
        if item.kind not in (None, KIND):
            raise InputError(f"kind {item.kind!r} is unknown; allowed: {KIND}")
        given: dict[str, Tree] = dict(item.metadata)
        observation = Observation(
            id=self._ports.new_id() if item.key is None else item.key,
            title=str(given.pop("title", "")) or item.text[:80],
            narrative=item.text,
            facts=given.pop("facts", ()),
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


class ObservationsFactory(SystemFactory):
    """The observations memory: what finished runs left behind, ranked by likeness and quality."""

    name = "observations"
    spec = "memstory_reference.targets.observations.target:ObservationsFactory"
    target_class = ObservationsTarget


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


def _ranked_hit(entry: RankedObservation) -> Hit:
    explain = {**asdict(entry.rank), "by_keyword": entry.by_keyword}
    return replace(_hit(entry.observation), score=entry.rank.rank, explain=explain)


def _receipt_item(stored: StoredObservation) -> ReceiptItem:
    return ReceiptItem(
        id=stored.observation.id,
        text=stored.observation.narrative,
        outcome=stored.outcome,
        reason="this run is stored already" if stored.outcome == "skipped" else None,
        kind=KIND,
        key=stored.observation.id,
    )


def _stored_data(stored: StoredObservation) -> dict[str, Tree]:
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
