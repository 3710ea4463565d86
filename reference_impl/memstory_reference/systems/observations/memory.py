"""The observations memory by the interface of all six."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

from memstory.contract.errors import StoryError
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope, ToolCall, ToolSchema, Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_choice, checked_number
from memstory_reference.setting_rules import CHROMA, SQLITE
from memstory_reference.system_memory import SystemMemory, check_names, engine_name, read_rows
from memstory_reference.systems.observations.observation import KIND, Observation
from memstory_reference.systems.observations.ordering import RankedObservation
from memstory_reference.systems.observations.quality import rank, similarity
from memstory_reference.systems.observations.research import LocalCorpus, Passage, ResearchLoop
from memstory_reference.systems.observations.run_tools import SPECS, RunTools
from memstory_reference.systems.observations.service import ObservationService, StoredObservation
from memstory_reference.text.secret_guard import left_out

METADATA = ("title", "facts", "task", "task_type", "score")
"""What a text may be added with."""
OF_A_RUN = ("task_type", "final_score", "run_id")


class ObservationsMemory(SystemMemory):
    """An open memory of observations; its service's model plans and writes for the job `research`, else rules do."""

    operations = frozenset(
        {
            *("add", "add.key", "add.verbatim", "get.id", "get.key", "list"),
            *("delete", "delete.scope", "delete.reports_missing"),
            *("delete.about", "delete.durable", "identifiers.spellings"),
            *("feedback", "context", "rank.quality", "unicode_lexical"),
            *("tool", "tool.schema"),
            *("search", "search.scores", "search.lexical", "search.hybrid", "search.min_score", "search.explain"),
        }
    )
    counted = ("observations", "pending")

    def __init__(self, service: ObservationService, engine: str) -> None:
        self._service = service
        self._engine = engine

    @property
    def store_name(self) -> str:
        name = engine_name(self._engine)
        return f"sqlite fts5 + {name}" if self._engine in (SQLITE, CHROMA) else name

    async def close(self) -> None:
        await self._service.close()

    async def owners(self) -> Sequence[str]:
        return await self._service.owners()

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        observations = [self._observation(item) for item in items]
        stored = await self._service.store(observations, scope.user)
        known = {}
        for one in stored:
            if one.outcome == "skipped":
                known[one.observation.id] = await self._service.get(one.observation.id, scope.user)
        return Receipt(items=[_receipt_item(one, known.get(one.observation.id)) for one in stored])

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self._service.get(_id(ref), scope.user)
        return _hit(found) if found else None

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        _check_kinds(query.kinds)
        self._check_query(query)
        found = await self._service.search(query.text, scope.user, query.top_k)
        floor = checked_number(-1 if query.min_score is None else query.min_score, "min_score", -1, 10)
        return [_ranked_hit(entry) for entry in found if entry.rank.rank >= floor]

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        _check_kinds(kinds)
        return [_hit(one) for one in await self._service.recent(scope.user, limit)]

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        every = ref.id is None and ref.key is None
        ids = [one.id for one in await self._service.recent(scope.user)] if every else [_id(ref)]
        return bool(await self._service.delete(ids, scope.user, durable=ref.durable))

    def full_text(self, hit: Hit) -> str:
        about: Mapping[str, Tree] = hit.metadata
        return " ".join((str(hit.id), about["title"], hit.text, about["task"], *about["facts"]))

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        return await self._service.rate(_id(ref), value, scope.user)

    async def context(self, query: Query, scope: Scope) -> str:
        return await self._service.get_context(query.text, scope.user, query.top_k)

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        stored = await self._service.store(read_rows(rows, _observation_of_row), scope.user)
        return [f"{one.observation.id}: this run is stored already" for one in stored if one.outcome == "skipped"]

    async def tools(self) -> Sequence[ToolSchema]:
        return SPECS

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        return await RunTools(self._service, scope.user).call(name, args)

    async def _job_compress_and_store(self, scope: Scope, *, task: str, output: str, **run: Tree) -> Tree:
        check_names("compress_and_store", run, (*OF_A_RUN, "sources"))
        stored = await self._service.compress_and_store(task=task, output=output, owner=scope.user, **run)
        return _stored_data(stored)

    async def _job_reindex(self, scope: Scope) -> Tree:
        return {"reindexed": await self._service.reindex(scope.user)}

    async def _job_research(
        self, scope: Scope, *, task: str, corpus: Sequence[Mapping[str, Tree]] = (), **given: Tree
    ) -> Tree:
        check_names("research", given, OF_A_RUN)
        passages = LocalCorpus(read_rows(corpus, lambda one: Passage(id=str(one["id"]), text=str(one["text"]))))
        run = await ResearchLoop(self._service, passages, self._service.chat).run(task, scope.user, **given)
        return {
            "plan": {"prior_work": list(run.plan.prior_work), "queries": list(run.plan.queries)},
            "context": run.context,
            "fetched": list(run.fetched),
            "spared": list(run.spared),
            "output": run.output,
            **(_stored_data(run.stored) if run.stored else {"outcome": "skipped"}),
        }

    async def _look_feedback(self, scope: Scope) -> Tree:
        """Return the runs that were rated, oldest first."""
        rated = [one for one in reversed(await self._service.recent(scope.user)) if one.rating is not None]
        return [
            {"at": one.timestamp.isoformat(), "id": one.id, "value": one.rating, "text": one.narrative} for one in rated
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        return dict(await self._service.status(scope.user))

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        match dict(args):
            case {"rank": rows, **more} if not more:
                return [rank(*row).rank for row in rows]
            case {"similarity": distances, **more} if not more:
                return [similarity(distance) for distance in distances]
        raise StoryError(
            "inspect: formula takes `rank`, rows of [sim, score, rating], or `similarity`, squared distances"
        )

    def _observation(self, item: Item) -> Observation:
        _check_kinds([] if item.kind is None else [item.kind])
        for name in item.metadata:
            checked_choice(name, "metadata", METADATA)
        identifier = self._service.new_id() if item.key is None else item.key
        title = str(item.metadata.get("title", "")) or item.text[:80]
        return _observation(identifier, item.text, {**item.metadata, "title": title}, self._service.clock.now())


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        checked_choice(kind, "kind", [KIND])


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
            **({"sources": list(observation.sources)} if observation.sources else {}),
        },
    )


def _observation_of_row(row: Mapping[str, Tree]) -> Observation:
    given = row.get("metadata") or {}
    known = {name: given[name] for name in (*METADATA, "rating", "sources") if name in given}
    return _observation(str(row["id"]), row["text"], known, datetime.fromisoformat(row["created_at"]))


def _observation(identifier: str, text: str, metadata: Mapping[str, Tree], moment: datetime) -> Observation:
    fields: dict[str, Tree] = {"title": "", "facts": (), **metadata, "task": str(metadata.get("task", text))}
    score = fields.pop("score", None)
    return Observation(id=identifier, narrative=text, final_score=score, timestamp=moment, **fields)


def _ranked_hit(entry: RankedObservation) -> Hit:
    explain = {**asdict(entry.rank), "by_keyword": entry.by_keyword}
    return replace(_hit(entry.observation), score=entry.rank.rank, explain=explain)


def _receipt_item(stored: StoredObservation, known: Observation | None) -> ReceiptItem:
    """Return what became of a text; `known` is the run that had its id before."""
    outcome, reason = stored.outcome, left_out(stored.observation.narrative)
    if known is not None:
        reason = "this run is stored already"
        if known.narrative != stored.observation.narrative:
            outcome, reason = "dropped", f"{reason}, with another text; forget it first"
    narrative, identifier = stored.observation.narrative, stored.observation.id
    return ReceiptItem(id=identifier, text=narrative, outcome=outcome, reason=reason, kind=KIND, key=identifier)


def _stored_data(stored: StoredObservation) -> dict[str, Tree]:
    observation = stored.observation
    told = {name: getattr(observation, name) for name in ("id", "title", "narrative")}
    return {
        **told,
        "outcome": stored.outcome,
        "by": stored.by,
        "warnings": list(stored.warnings),
        "facts": list(observation.facts),
    }
