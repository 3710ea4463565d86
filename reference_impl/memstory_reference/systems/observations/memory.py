"""The observations memory by the interface of all six: two indexes behind one set of operations, for many owners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memstory.contract.clock import Clock
from memstory.contract.errors import StoryError
from memstory.contract.models import ChatModel, ChatRequest, Message
from memstory.contract.target import Hit, Item, Query, Receipt, ReceiptItem, Ref, Scope, ToolCall, ToolSchema, Tree
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    checked_choice,
    checked_count,
    checked_number,
    checked_owner,
    checked_query,
    checked_text,
    limits_of,
)
from memstory_reference.ports import Embedder, NewId, Purpose, Vectors, VectorStore
from memstory_reference.setting_rules import CHROMA, SQLITE
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.storage.vector_matrix import check_dimension
from memstory_reference.system_memory import SystemMemory, check_names, engine_name, read_rows
from memstory_reference.systems.observations.compression import (
    PURPOSE,
    TEMPERATURE,
    Summary,
    compression_prompt,
    parse_summary,
    summary_by_rules,
)
from memstory_reference.systems.observations.observation import (
    KIND,
    TASK_TYPES,
    Observation,
    checked_observation,
    checked_rating,
    checked_score,
)
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.systems.observations.outbox import Outbox
from memstory_reference.systems.observations.ranking import (
    RankedObservation,
    best_of_each_task,
    pool_size,
    rank,
    rank_candidates,
    similarity,
)
from memstory_reference.systems.observations.research import (
    LocalCorpus,
    Passage,
    Researcher,
    ResearchPlan,
    injection,
)
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.text.lines import shorten
from memstory_reference.text.secret_guard import left_out
from memstory_reference.text.words import extract_keywords
from memstory_reference.tooling import AddTool, ChangeTool, LocalTools, ReadTool, parameters

RELATED_TASKS = 100
MOST_LISTED = 1_000_000
MOST_OUTPUT_CHARACTERS = 10_000_000
ATTEMPTS = 2
UNUSABLE = f"no usable JSON in {ATTEMPTS} answers of the model: summarised by rules"
METADATA = ("title", "facts", "task", "task_type", "score")
"""What a text may be added with."""
OF_A_RUN = ("task_type", "final_score", "run_id")

_FEW = {"type": "integer", "description": "How many runs at most", "default": 3}
_TYPE = {"type": "string", "description": f"One of {', '.join(TASK_TYPES)}", "default": "research"}
SEARCH = ReadTool(
    name="search_runs",
    description="Before planning a task: what earlier runs found about it, the better runs first.",
    parameters=parameters("task", task="The task that is about to be planned", top_k=_FEW),
)
STORE = AddTool(
    name="store_run",
    description="After a run: keep what it found, so that later runs need not find it again.",
    parameters=parameters(
        "task",
        "output",
        task="The task as it was given",
        output="What the run wrote",
        task_type=_TYPE,
        final_score={"type": "number", "description": "A reviewer's score from 0 to 10, if there was one"},
        run_id="The id of the run; storing it again changes nothing",
    ),
)
RATE = ChangeTool(
    name="rate_run",
    description="Rate a run by hand: better ones are returned first.",
    parameters=parameters(
        "run_id", "rating", run_id="The id of the run", rating={"type": "number", "description": "From -2 to 2"}
    ),
)
FORGET = ChangeTool(
    name="forget_run",
    description="Forget a run for good.",
    parameters=parameters("run_id", run_id="The id of the run"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """What happened to one observation: `stored`, or `skipped` because its run was stored before."""

    observation: Observation
    outcome: str
    warnings: Sequence[str] = ()
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRun:
    """A finished run: what it fetched, what it left out as already known, and what it remembered, if anything."""

    plan: ResearchPlan
    context: str
    fetched: Sequence[str]
    spared: Sequence[str]
    output: str
    stored: StoredObservation | None


@dataclass(kw_only=True, eq=False)
class ObservationsMemory(SystemMemory):
    """One memory for many owners. Writers take turns; a write is acknowledged when the store has its row.

    Without a `chat` model, rules summarise outputs, plan and write.
    """

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

    rows: ObservationsStore
    vectors: VectorStore
    embedder: Embedder
    chat: ChatModel | None
    clock: Clock
    new_id: NewId
    config: ObservationsSettings
    engine: str = SQLITE
    tombstones: Tombstones = field(default_factory=NoTombstones)
    release: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.embedder = CheckedEmbedder(self.embedder)
        self._outbox = Outbox(self.rows, self.vectors)
        self._turn = asyncio.Lock()

    @property
    def store_name(self) -> str:
        name = engine_name(self.engine)
        return f"sqlite fts5 + {name}" if self.engine in (SQLITE, CHROMA) else name

    async def open(self) -> None:
        """Bring the vector index up to what the store holds."""
        async with self._turn:
            await self._outbox.catch_up()
            await self._outbox.mend()

    async def close(self) -> None:
        async with self._turn:
            await self.rows.aclose()
            await self.vectors.close()
            self.tombstones.close()
            self.release()

    async def owners(self) -> Sequence[str]:
        return await self.rows.run(ObservationsStore.owners)

    async def store(self, observations: Sequence[Observation], owner: str) -> list[StoredObservation]:
        """Store finished runs, embedding their narratives in one call; storing a run again changes nothing."""
        checked_owner(owner)
        if isinstance(observations, str) or not isinstance(observations, Sequence):
            raise InputError(f"observations must be a list, not {type(observations).__name__}")
        kept = [checked_observation(observation, self.config) for observation in observations]
        for one in kept:
            self.tombstones.refuse(owner, one.title, one.narrative, one.task, *one.facts)
        known = await self.rows.run(ObservationsStore.tasks, owner, [new.id for new in kept])
        fresh = {new.id: new for new in reversed(kept) if new.id not in known}
        inserted: list[str] = []
        if fresh:
            vectors = await self._embed([observation.narrative for observation in fresh.values()], Purpose.DOCUMENT)
            rows = list(zip(fresh.values(), vectors, strict=True))
            async with self._turn:
                inserted = await self.rows.run(ObservationsStore.insert, owner, rows)
                await self._outbox.catch_up()
        waiting = set(inserted)
        outcomes = []
        for observation in kept:
            outcome = "stored" if observation.id in waiting else "skipped"
            outcomes.append(StoredObservation(observation=observation, outcome=outcome))
            waiting.discard(observation.id)
        return outcomes

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = await self.embedder.embed(texts, purpose)
        check_dimension(await self.rows.run(ObservationsStore.dimension), vectors[0])
        return vectors

    async def compress_and_store(
        self,
        *,
        task: str,
        output: str,
        owner: str,
        task_type: str = "research",
        final_score: float | None = None,
        run_id: str | None = None,
        sources: Sequence[str] = (),
    ) -> StoredObservation:
        """Summarise a run's output and store it, whatever its score (OF-6); nothing is stored without an output."""
        checked_owner(owner)
        checked_score(final_score)
        checked_text(task, "task", self.config.max_memory_characters, "max_memory_characters", may_be_blank=True)
        if not isinstance(output, str) or not output.strip():
            raise InputError("output must be text that says something; a run without output is not stored")
        if len(output) > MOST_OUTPUT_CHARACTERS:
            raise InputError(f"output has {len(output)} characters; at most {MOST_OUTPUT_CHARACTERS}")
        # Before a model reads it: a secret that is not kept is not sent away either.
        task, output = self.config.admit(task, output)
        self.tombstones.refuse(owner, task, output)
        identifier = self.new_id() if run_id is None else run_id

        def observed(summary: Summary) -> Observation:
            observation = Observation(
                id=identifier,
                title=summary.title,
                narrative=summary.narrative,
                facts=summary.facts,
                task=task,
                task_type=task_type,
                final_score=final_score,
                timestamp=self.clock.now(),
                sources=sources,
            )
            return checked_observation(observation, self.config)

        # What is wrong with the call itself is said before a model is asked.
        observed(summary_by_rules(task, output))
        for _ in range(ATTEMPTS if self.chat else 0):
            summary = await self._summarise(task, output)
            try:
                observation = None if summary is None else observed(summary)
            except InputError:
                continue  # a summary that cannot be kept is as unusable as none
            if summary and observation:
                break
        else:
            summary = summary_by_rules(task, output, *([UNUSABLE] if self.chat else []))
            observation = observed(summary)
        (stored,) = await self.store([observation], owner)
        missing = left_out(f"{task} {output}")
        return replace(stored, warnings=(*summary.warnings, *([missing] if missing else [])), by=summary.by)

    async def _summarise(self, task: str, output: str) -> Summary | None:
        if self.chat is None:
            return None
        prompt = Message(role="user", content=compression_prompt(task, output))
        reply = await self.chat.chat(ChatRequest([prompt], purpose=PURPOSE, temperature=TEMPERATURE))
        return parse_summary(reply.content)

    async def find(
        self, task: str, owner: str, top_k: int | None = None, min_sim: float | None = None
    ) -> list[RankedObservation]:
        """Return what is known about `task`, best rank first; quality counts before the cut to `top_k`."""
        top_k = checked_count(self.config.top_k if top_k is None else top_k, "top_k")
        floor = self.config.min_sim if min_sim is None else checked_number(min_sim, "min_sim", -1, 1)
        return best_of_each_task(await self._rank(task, owner, top_k and pool_size(top_k), floor))[:top_k]

    async def find_related(self, task: str, owner: str) -> list[RankedObservation]:
        """Return what is about `task`, of up to RELATED_TASKS tasks and with all their repeats, best rank first."""
        return await self._rank(task, owner, RELATED_TASKS, self.config.min_sim)

    async def _rank(self, task: str, owner: str, pool: int, floor: float) -> list[RankedObservation]:
        checked_owner(owner)
        if not checked_query(task, limits_of(self.config), may_be_blank=True).strip() or not pool:
            return []
        keywords = extract_keywords(task)
        (query,) = await self._embed([task], Purpose.QUERY)
        similarities = await self._outbox.near(query, owner, pool, floor)
        named = await self.rows.run(ObservationsStore.ids_by_words, owner, keywords, pool)
        far = [identifier for identifier in named if identifier not in similarities]
        for identifier, vector in (await self.rows.run(ObservationsStore.vectors, owner, far)).items():
            similarities[identifier] = cosine(query, vector)
        found = await self.rows.run(ObservationsStore.get, owner, list(similarities))
        return rank_candidates(found, similarities, set(named), keywords, min_sim=floor)

    async def get_context(self, task: str, owner: str, top_k: int | None = None) -> str:
        """Return the block to set before a planner; empty for a task that nothing is known about (O-18)."""
        found = [entry.observation for entry in await self.find(task, owner, top_k)]
        return injection(found, self.config.max_context_characters)

    async def research(self, task: str, owner: str, corpus: LocalCorpus, **given: Tree) -> ResearchRun:
        """Carry out `task` and store what it found, with what is `given` to `compress_and_store`.

        A `final_score` comes from a reviewer, never from the text. A run that read nothing and knew nothing is not
        stored: it would be prior work that teaches nothing.
        """
        found, most = await self.find_related(task, owner), self.config.max_context_characters
        related, told = ([one.observation for one in runs] for runs in (found, best_of_each_task(found)))
        context = injection(told[: self.config.top_k], most)
        researcher = Researcher(corpus=corpus, chat=self.chat, most=most)
        plan = await researcher.plan(task, related, told, context)
        fetched, spared = researcher.fetch(plan)
        prior = [observation for observation in told if observation.title in plan.prior_work]
        output, read = await researcher.write(task, prior, fetched), [passage.id for passage in fetched]
        stored = None
        if fetched or prior:
            # What it spared is what it builds on: the best run of a task speaks for those before it.
            sources = [*read, *spared]
            stored = await self.compress_and_store(task=task, output=output, owner=owner, sources=sources, **given)
        return ResearchRun(plan=plan, context=context, fetched=read, spared=spared, output=output, stored=stored)

    async def recent(self, owner: str, limit: int | None = None) -> list[Observation]:
        """Return observations, newest first."""
        most = None if limit is None else checked_count(limit, "limit", high=MOST_LISTED)
        return await self.rows.run(ObservationsStore.recent, checked_owner(owner), most)

    async def add(self, items: Sequence[Item], scope: Scope) -> Receipt:
        owner = checked_owner(scope.user)
        stored = await self.store([self._observation(item) for item in items], owner)
        skipped = [one.observation.id for one in stored if one.outcome == "skipped"]
        known = {one.id: one for one in await self.rows.run(ObservationsStore.get, owner, skipped)}
        return Receipt(items=[_receipt_item(one, known) for one in stored])

    def _observation(self, item: Item) -> Observation:
        _check_kinds([] if item.kind is None else [item.kind])
        for name in item.metadata:
            checked_choice(name, "metadata", METADATA)
        identifier = self.new_id() if item.key is None else item.key
        title = str(item.metadata.get("title", "")) or item.text[:80]
        return _observation(identifier, item.text, {**item.metadata, "title": title}, self.clock.now())

    async def get(self, ref: Ref, scope: Scope) -> Hit | None:
        found = await self.rows.run(ObservationsStore.get, checked_owner(scope.user), [self._id(ref)])
        return _hit(found[0]) if found else None

    def _id(self, ref: Ref) -> str:
        identifier = ref.key if ref.id is None else ref.id
        if identifier is None:
            raise InputError("an observation is named by the id of its run")
        return checked_text(identifier, "id", self.config.max_query_characters)

    async def search(self, query: Query, scope: Scope) -> Sequence[Hit]:
        _check_kinds(query.kinds)
        self._check_query(query)
        found = await self.find(query.text, scope.user, query.top_k)
        floor = checked_number(-1 if query.min_score is None else query.min_score, "min_score", -1, 10)
        return [_ranked_hit(entry) for entry in found if entry.rank.rank >= floor]

    async def context(self, query: Query, scope: Scope) -> str:
        return await self.get_context(query.text, scope.user, query.top_k)

    async def list(self, scope: Scope, kinds: Sequence[str] = (), limit: int | None = None) -> Sequence[Hit]:
        _check_kinds(kinds)
        return [_hit(one) for one in await self.recent(scope.user, limit)]

    async def delete(self, ref: Ref, scope: Scope) -> bool:
        """Forget observations in both indexes, `durable` for good: no run that tells them again is stored."""
        owner, every = checked_owner(scope.user), ref.id is None and ref.key is None
        ids = [one.id for one in await self.recent(owner)] if every else [self._id(ref)]
        async with self._turn:
            if ref.durable:
                gone = await self.rows.run(ObservationsStore.get, owner, ids)
                self.tombstones.bury(owner, [text for one in gone for text in (one.narrative, *one.facts)])
            deleted = await self.rows.run(ObservationsStore.delete, owner, ids)
            await self._outbox.catch_up()
        return bool(deleted)

    def full_text(self, hit: Hit) -> str:
        about: Mapping[str, Tree] = hit.metadata
        return " ".join((str(hit.id), about["title"], hit.text, about["task"], *about["facts"]))

    async def feedback(self, ref: Ref, value: float, scope: Scope) -> bool:
        """Set a person's rating; False where the owner has no such observation."""
        wanted = self._id(ref), checked_rating(value, self.config)
        async with self._turn:
            return await self.rows.run(ObservationsStore.rate, checked_owner(scope.user), *wanted)

    async def import_rows(self, rows: Sequence[Mapping[str, Tree]], scope: Scope) -> Sequence[str]:
        stored = await self.store(read_rows(rows, _observation_of_row), scope.user)
        return [f"{one.observation.id}: this run is stored already" for one in stored if one.outcome == "skipped"]

    async def tools(self) -> Sequence[ToolSchema]:
        return (SEARCH, STORE, RATE, FORGET)

    async def tool(self, name: str, args: Mapping[str, Tree], scope: Scope, caller: str | None = None) -> ToolCall:
        async def search(given: Mapping[str, Tree]) -> Tree:
            found = await self.find(given["task"], scope.user, given.get("top_k"))
            room = self.config.max_context_characters // max(1, len(found))
            return [_result_row(entry, room) for entry in found]

        async def store(given: Mapping[str, Tree]) -> Tree:
            run = {name: value for name, value in given.items() if value not in (None, "")}
            stored = await self.compress_and_store(owner=scope.user, **{"task": "", "output": "", **run})
            told = {"id": stored.observation.id, "outcome": stored.outcome, "title": stored.observation.title}
            return {**told, **({"warnings": list(stored.warnings)} if stored.warnings else {})}

        async def rate(given: Mapping[str, Tree]) -> Tree:
            return {"success": await self.feedback(Ref(id=given["run_id"]), given["rating"], scope)}

        async def forget(given: Mapping[str, Tree]) -> Tree:
            return {"success": await self.delete(Ref(id=given["run_id"]), scope)}

        return await LocalTools((SEARCH, search), (STORE, store), (RATE, rate), (FORGET, forget)).call(name, args)

    async def _job_compress_and_store(self, scope: Scope, *, task: str, output: str, **run: Tree) -> Tree:
        check_names("compress_and_store", run, (*OF_A_RUN, "sources"))
        stored = await self.compress_and_store(task=task, output=output, owner=scope.user, **run)
        return _stored_data(stored)

    async def _job_reindex(self, scope: Scope) -> Tree:
        """Make the vector index again from the store; return how many observations it holds."""
        async with self._turn:
            return {"reindexed": await self._outbox.rebuild(checked_owner(scope.user))}

    async def _job_research(
        self, scope: Scope, *, task: str, corpus: Sequence[Mapping[str, Tree]] = (), **given: Tree
    ) -> Tree:
        check_names("research", given, OF_A_RUN)
        passages = LocalCorpus(read_rows(corpus, lambda one: Passage(id=str(one["id"]), text=str(one["text"]))))
        run = await self.research(task, scope.user, passages, **given)
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
        rated = [one for one in reversed(await self.recent(scope.user)) if one.rating is not None]
        return [
            {"at": one.timestamp.isoformat(), "id": one.id, "value": one.rating, "text": one.narrative} for one in rated
        ]

    async def _look_status(self, scope: Scope) -> Tree:
        """Return the number of rows in each index, and what waits to go from one to the other."""
        owner = checked_owner(scope.user)
        rows, whole = await self.rows.run(ObservationsStore.count, owner), await self.recent(owner)
        return {
            "observations": len(whole),
            "unreadable": rows - len(whole),
            "vectors": await (await self._outbox.index(owner)).count(),
            "pending": len(await self.rows.run(ObservationsStore.pending)),
        }

    async def _look_formula(self, _: Scope, **args: Tree) -> Tree:
        match dict(args):
            case {"rank": rows, **more} if not more:
                return [rank(*row).rank for row in rows]
            case {"similarity": distances, **more} if not more:
                return [similarity(distance) for distance in distances]
        raise StoryError(
            "inspect: formula takes `rank`, rows of [sim, score, rating], or `similarity`, squared distances"
        )


def cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Return the cosine of two unit vectors, in [-1, 1]."""
    return float(np.clip(np.dot(left, right), -1.0, 1.0))


def _check_kinds(kinds: Sequence[str]) -> None:
    for kind in kinds:
        checked_choice(kind, "kind", [KIND])


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


def _result_row(entry: RankedObservation, room: int) -> dict[str, Tree]:
    """Return what a tool tells of a run, in about so many characters."""
    one, facts = entry.observation, list[str]()
    narrative = shorten(one.narrative, max(200, room // 2))
    room -= len(narrative) + len(one.title)
    for fact in one.facts:
        room -= len(fact)
        facts += [fact] if room >= 0 else []
    about = {"run_id": one.id, "title": one.title, "score": one.final_score, "rating": one.rating}
    return {**about, "narrative": narrative, "facts": facts, **asdict(entry.rank)}


def _receipt_item(stored: StoredObservation, known: Mapping[str, Observation]) -> ReceiptItem:
    """Return what became of a text; `known` are the runs that had the ids of those that were skipped."""
    identifier, narrative = stored.observation.id, stored.observation.narrative
    outcome, reason = stored.outcome, left_out(narrative)
    if outcome == "skipped" and identifier in known:
        reason = "this run is stored already"
        if known[identifier].narrative != narrative:
            outcome, reason = "dropped", f"{reason}, with another text; forget it first"
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
