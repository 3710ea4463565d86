"""The observations memory: both indexes behind one set of operations, each for one owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from memstory.contract.clock import Clock
from memstory.contract.models import ChatModel, ChatRequest, Message
from memstory_reference.errors import InputError
from memstory_reference.input_checks import (
    checked_count,
    checked_number,
    checked_owner,
    checked_query,
    checked_text,
    checked_texts,
    limits_of,
)
from memstory_reference.ports import Embedder, NewId, Purpose, Vectors, VectorStore
from memstory_reference.storage.checked_embedder import CheckedEmbedder
from memstory_reference.storage.tombstones import NoTombstones, Tombstones
from memstory_reference.storage.vector_matrix import check_dimension
from memstory_reference.systems.observations.compression import (
    PURPOSE,
    TEMPERATURE,
    Summary,
    compression_prompt,
    parse_summary,
    summary_by_rules,
)
from memstory_reference.systems.observations.injection import injection
from memstory_reference.systems.observations.observation import (
    Observation,
    checked_observation,
    checked_rating,
    checked_score,
)
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.systems.observations.ordering import (
    ObservationCandidate,
    RankedObservation,
    best_of_each_task,
    pool_size,
    rank_candidates,
)
from memstory_reference.systems.observations.outbox import Outbox
from memstory_reference.systems.observations.settings import ObservationsSettings
from memstory_reference.text.secret_guard import left_out
from memstory_reference.text.words import extract_keywords

RELATED_TASKS = 100
MOST_AT_ONCE = 10_000
MOST_LISTED = 1_000_000
MOST_OUTPUT_CHARACTERS = 10_000_000
ATTEMPTS = 2
UNUSABLE = f"no usable JSON in {ATTEMPTS} answers of the model: summarised by rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """What happened to one observation: `stored`, or `skipped` because its run was stored before."""

    observation: Observation
    outcome: str
    warnings: Sequence[str] = field(default=())
    by: str | None = None


@dataclass(kw_only=True)
class ObservationService:
    """One memory for many owners. Writers take turns; a write is acknowledged when the store has its row.

    Without a `chat` model, outputs are summarised by rules.
    """

    rows: ObservationsStore
    vectors: VectorStore
    embedder: Embedder
    chat: ChatModel | None
    clock: Clock
    new_id: NewId
    config: ObservationsSettings
    tombstones: Tombstones = field(default_factory=NoTombstones)
    release: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self._embedder = CheckedEmbedder(self.embedder)
        self._outbox = Outbox(self.rows, self.vectors)
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Bring the vector index up to what the store holds."""
        async with self._turn:
            await self._outbox.catch_up()
            await self._outbox.mend()

    async def close(self) -> None:
        """Close both indexes."""
        async with self._turn:
            await self.rows.aclose()
            await self.vectors.close()
            self.tombstones.close()
            self.release()

    async def store(self, observations: Sequence[Observation], owner: str) -> list[StoredObservation]:
        """Store finished runs, embedding their narratives in one call; storing a run again changes nothing."""
        checked_owner(owner)
        if isinstance(observations, str) or not isinstance(observations, Sequence):
            raise InputError(f"observations must be a list, not {type(observations).__name__}")
        kept = [checked_observation(observation, self.config) for observation in observations]
        for one in kept:
            self.tombstones.refuse(owner, *observation_text(one))
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

    async def search(
        self, task: str, owner: str, top_k: int | None = None, min_sim: float | None = None
    ) -> list[RankedObservation]:
        """Return what is known about `task`, best rank first; quality counts before the cut to `top_k`."""
        top_k = checked_count(self.config.top_k if top_k is None else top_k, "top_k")
        floor = self.config.min_sim if min_sim is None else checked_number(min_sim, "min_sim", -1, 1)
        return best_of_each_task(await self._rank(task, owner, top_k and pool_size(top_k), floor))[:top_k]

    async def find_related(self, task: str, owner: str) -> list[RankedObservation]:
        """Return what is about `task`, of up to RELATED_TASKS tasks and with all their repeats, best rank first."""
        return await self._rank(task, owner, RELATED_TASKS, self.config.min_sim)

    async def get_context(self, task: str, owner: str, top_k: int | None = None) -> str:
        """Return the block to set before a planner; empty for a task that nothing is known about (O-18)."""
        found = [entry.observation for entry in await self.search(task, owner, top_k)]
        return injection(found, self.config.max_context_characters)

    async def rate(self, identifier: str, rating: float, owner: str) -> bool:
        """Set a person's rating; False where the owner has no such observation."""
        wanted = self._id(identifier), checked_rating(rating, self.config)
        async with self._turn:
            return await self.rows.run(ObservationsStore.rate, checked_owner(owner), *wanted)

    async def get(self, identifier: str, owner: str) -> Observation | None:
        """Return one observation."""
        found = await self.rows.run(ObservationsStore.get, checked_owner(owner), [self._id(identifier)])
        return found[0] if found else None

    async def recent(self, owner: str, limit: int | None = None) -> list[Observation]:
        """Return observations, newest first."""
        most = None if limit is None else checked_count(limit, "limit", high=MOST_LISTED)
        return await self.rows.run(ObservationsStore.recent, checked_owner(owner), most)

    async def delete(self, ids: Sequence[str], owner: str, *, durable: bool = False) -> list[str]:
        """Forget observations in both indexes, `durable` for good: no run that tells them again is stored.

        Return the ids that existed.
        """
        wanted = checked_texts(ids, "ids", MOST_AT_ONCE, self.config.max_query_characters)
        checked_owner(owner)
        async with self._turn:
            if durable:
                gone = await self.rows.run(ObservationsStore.get, owner, wanted)
                self.tombstones.bury(owner, [text for one in gone for text in (one.narrative, *one.facts)])
            deleted = await self.rows.run(ObservationsStore.delete, owner, wanted)
            await self._outbox.catch_up()
            return deleted

    async def owners(self) -> Sequence[str]:
        """Return who has observations here."""
        return await self.rows.run(ObservationsStore.owners)

    async def reindex(self, owner: str | None = None) -> int:
        """Make the vector index again from the store, for one owner or all; return how many observations it holds."""
        async with self._turn:
            owners = [checked_owner(owner)] if owner is not None else await self.owners()
            return sum([await self._outbox.rebuild(one) for one in owners])

    async def status(self, owner: str) -> Mapping[str, int]:
        """Return the number of rows in each index, and what waits to go from one to the other."""
        rows = await self.rows.run(ObservationsStore.count, checked_owner(owner))
        whole = await self.rows.run(ObservationsStore.recent, owner, None)
        return {
            "observations": len(whole),
            "unreadable": rows - len(whole),
            "vectors": await (await self._outbox.index(owner)).count(),
            "pending": len(await self.rows.run(ObservationsStore.pending)),
        }

    def _id(self, identifier: object) -> str:
        return checked_text(identifier, "id", self.config.max_query_characters)

    async def _summarise(self, task: str, output: str) -> Summary | None:
        if self.chat is None:
            return None
        prompt = Message(role="user", content=compression_prompt(task, output))
        reply = await self.chat.chat(ChatRequest([prompt], purpose=PURPOSE, temperature=TEMPERATURE))
        return parse_summary(reply.content)

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        vectors = await self._embedder.embed(texts, purpose)
        check_dimension(await self.rows.run(ObservationsStore.dimension), vectors[0])
        return vectors

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
        by_keyword = set(named)
        candidates = (
            ObservationCandidate(observation=one, similarity=similarities[one.id], by_keyword=one.id in by_keyword)
            for one in found
        )
        return rank_candidates(candidates, keywords, min_sim=floor)


def observation_text(observation: Observation) -> list[str]:
    """Return all that an observation says."""
    return [observation.title, observation.narrative, observation.task, *observation.facts]


def cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Return the cosine of two unit vectors, in [-1, 1]."""
    return float(np.clip(np.dot(left, right), -1.0, 1.0))
