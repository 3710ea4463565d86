"""The observations memory: both indexes behind one set of operations, each for one owner."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import (
    ChatModel,
    Clock,
    Embedder,
    Message,
    NewId,
    Purpose,
    Record,
    VectorIndex,
    Vectors,
    VectorStore,
)
from memstory_reference.storage.vector_matrix import checked_vectors
from memstory_reference.systems.observations.compression import (
    PURPOSE,
    TEMPERATURE,
    Summary,
    compression_prompt,
    parse_summary,
    summary_by_rules,
)
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.injection import injection
from memstory_reference.systems.observations.observation import Observation, check_score, checked
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.systems.observations.ordering import Candidate, Ranked, best_of_each_task, ordered, pool_size
from memstory_reference.text.keywords import extract_keywords

LOG = logging.getLogger(__name__)
T = TypeVar("T")

COLLECTION = "observations"
CATCH_UP_BATCH = 500
RELATED_TASKS = 100
ATTEMPTS = 2
REFUSALS = (InputError, StoreConflictError)
"""What an index says to a row that it will never take."""

UNUSABLE = f"no usable JSON in {ATTEMPTS} answers of the model: summarised by rules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of one observation: `stored`, or `skipped` because its run was stored before."""

    observation: Observation
    outcome: str
    warnings: Sequence[str] = field(default=())
    by: str | None = None


class ObservationService:
    """One memory for many owners. Writers take turns; a write is acknowledged when SQLite has it.

    Without a `chat` model, outputs are summarised by rules.
    """

    def __init__(
        self,
        *,
        file: Path,
        vectors: VectorStore,
        embedder: Embedder,
        chat: ChatModel | None,
        clock: Clock,
        new_id: NewId,
        config: ObservationsConfig,
    ) -> None:
        self._store = ObservationsStore(file, model=embedder.model)
        self._lane = self._store.lane
        self._vectors = vectors
        self._embedder = embedder
        self._chat = chat
        self._clock = clock
        self._new_id = new_id
        self.config = config
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Bring the vector index up to what SQLite holds: a process may have died between the two."""
        async with self._turn:
            await self._catch_up()

    async def close(self) -> None:
        """Close both indexes."""
        async with self._turn:
            await self._store.aclose()
            await self._vectors.close()

    async def store(self, observations: Sequence[Observation], owner: str) -> list[Stored]:
        """Store finished runs, embedding their narratives in one call; storing a run again changes nothing."""
        kept = [checked(observation) for observation in observations]
        known = {old.id for old in await self._lane.run(self._store.get, owner, [new.id for new in kept])}
        fresh = {new.id: new for new in reversed(kept) if new.id not in known}
        if fresh:
            texts = [observation.narrative for observation in fresh.values()]
            vectors = await self._embed(texts, Purpose.DOCUMENT)
            async with self._turn:
                inserted = await self._lane.run(
                    self._store.insert, owner, list(zip(fresh.values(), vectors, strict=True))
                )
                await self._catch_up()
        else:
            inserted = []
        waiting = set(inserted)
        outcomes = []
        for observation in kept:
            outcomes.append(
                Stored(observation=observation, outcome="stored" if observation.id in waiting else "skipped")
            )
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
    ) -> Stored:
        """Summarise a run's output and store it, whatever its score (OF-6); nothing is stored without an output."""
        check_score(final_score)
        if not output.strip():
            raise InputError("output: it is empty; a run without output is not stored")
        summary = await self._summarise(task, output)
        observation = Observation(
            id=run_id or self._new_id(),
            title=summary.title,
            narrative=summary.narrative,
            facts=summary.facts,
            task=task,
            task_type=task_type,
            final_score=final_score,
            timestamp=self._clock.now(),
            sources=tuple(sources),
        )
        (stored,) = await self.store([observation], owner)
        return replace(stored, warnings=summary.warnings, by=summary.by)

    async def search(
        self, task: str, owner: str, top_k: int | None = None, min_sim: float | None = None
    ) -> list[Ranked]:
        """Return what is known about `task`, best rank first; quality counts before the cut to `top_k`."""
        top_k = self.config.top_k if top_k is None else top_k
        if top_k < 0:
            raise InputError(f"top_k: {top_k} is negative")
        if top_k == 0 or not task.strip():
            return []
        ranked = await self._ranked(task, owner, pool_size(top_k), self.config.min_sim if min_sim is None else min_sim)
        return best_of_each_task(ranked)[:top_k]

    async def related(self, task: str, owner: str) -> list[Ranked]:
        """Return what is about `task`, of up to RELATED_TASKS tasks and with all their repeats, best rank first."""
        return await self._ranked(task, owner, RELATED_TASKS, self.config.min_sim) if task.strip() else []

    async def get_context(self, task: str, owner: str, top_k: int | None = None) -> str:
        """Return the block to set before a planner; empty for a task that nothing is known about (O-18)."""
        found = [entry.observation for entry in await self.search(task, owner, top_k)]
        return injection(found, self.config.context_characters)

    async def rate(self, identifier: str, rating: float, owner: str) -> bool:
        """Set a person's rating; False where the owner has no such observation."""
        low, high = self.config.rating_min, self.config.rating_max
        if isinstance(rating, bool) or not math.isfinite(rating) or not low <= rating <= high:
            raise InputError(f"rating: {rating} is outside {low:g} to {high:g}")
        async with self._turn:
            return await self._lane.run(self._store.rate, owner, identifier, rating)

    async def get(self, identifier: str, owner: str) -> Observation | None:
        """Return one observation."""
        found = await self._lane.run(self._store.get, owner, [identifier])
        return found[0] if found else None

    async def recent(self, owner: str, limit: int | None = None) -> list[Observation]:
        """Return observations, newest first."""
        return await self._lane.run(self._store.recent, owner, limit)

    async def delete(self, ids: Sequence[str], owner: str) -> list[str]:
        """Forget observations in both indexes; return the ids that existed."""
        async with self._turn:
            deleted = await self._lane.run(self._store.delete, owner, ids)
            await self._catch_up()
            return deleted

    async def reindex(self, owner: str | None = None) -> int:
        """Make the vector index anew from SQLite, for one owner or all; return how many observations it holds."""
        async with self._turn:
            owners = [owner] if owner is not None else await self._lane.run(self._store.owners)
            return sum([await self._rebuild(one) for one in owners])

    async def status(self, owner: str) -> Mapping[str, int]:
        """Return the number of rows in each index, and what waits to go from one to the other."""
        return {
            "observations": await self._lane.run(self._store.count, owner),
            "vectors": await (await self._index(owner)).count(),
            "pending": len(await self._lane.run(self._store.pending)),
        }

    async def _summarise(self, task: str, output: str) -> Summary:
        if self._chat is None:
            return summary_by_rules(task, output)
        messages = [Message(role="user", content=compression_prompt(task, output))]
        for _ in range(ATTEMPTS):
            reply = await self._chat.chat(messages, purpose=PURPOSE, temperature=TEMPERATURE)
            summary = parse_summary(reply.content)
            if summary:
                return summary
        return summary_by_rules(task, output, UNUSABLE)

    async def _embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        answer = await self._embedder.embed(texts, purpose)
        dimension = await self._lane.run(self._store.dimension)
        return checked_vectors(answer, count=len(texts), model=self._embedder.model, dimension=dimension)

    async def _ranked(self, task: str, owner: str, pool: int, floor: float) -> list[Ranked]:
        keywords = extract_keywords(task)
        (query,) = await self._embed([task], Purpose.QUERY)
        similarities = await self._near(query, owner, pool, floor)
        named = await self._lane.run(self._store.named, owner, keywords, pool)
        far = [identifier for identifier in named if identifier not in similarities]
        for identifier, vector in (await self._lane.run(self._store.vectors, owner, far)).items():
            similarities[identifier] = cosine(query, vector)
        found = await self._lane.run(self._store.get, owner, list(similarities))
        by_keyword = set(named)
        candidates = (
            Candidate(observation=one, similarity=similarities[one.id], by_keyword=one.id in by_keyword)
            for one in found
        )
        return ordered(candidates, keywords, min_sim=floor)

    async def _near(self, query: NDArray[np.float32], owner: str, tasks: int, floor: float) -> dict[str, float]:
        """Return the similarities of the nearest observations: of so many tasks, or all those above the floor."""
        index, fetch = await self._index(owner), tasks
        while True:
            matches = await index.query(query, fetch)
            found = {match.record.id: match.similarity for match in matches}
            known = await self._lane.run(self._store.tasks, owner, list(found))
            is_last = len(matches) < fetch or matches[-1].similarity < floor
            if is_last or len(set(known.values())) >= tasks:
                return found
            # Repeats of one task take one place in the end, and must not keep others out of the pool.
            fetch *= 2

    async def _rebuild(self, owner: str) -> int:
        try:
            index = await self._index(owner)
        except InputError as refusal:
            LOG.warning("the observations of %r are in no vector index: %s", owner, refusal)
            return 0
        ids = await self._lane.run(self._store.ids, owner)
        stale = {record.id for record in await index.list()} - set(ids)
        await index.delete(sorted(stale))
        return sum([await self._copy(owner, batch) for batch in _batches(ids)])

    async def _catch_up(self) -> None:
        pending = await self._lane.run(self._store.pending)
        for batch in _batches(pending):
            for owner in dict.fromkeys(entry.owner for entry in batch):
                await self._copy(owner, [entry.id for entry in batch if entry.owner == owner])
            await self._lane.run(self._store.done, batch)

    async def _copy(self, owner: str, ids: Sequence[str]) -> int:
        """Bring rows of the vector index up to date; those that it refuses are set aside and reported."""
        found = await self._lane.run(self._store.get, owner, ids)
        vectors = await self._lane.run(self._store.vectors, owner, ids)
        records = [Record(id=one.id, text=one.narrative, vector=vectors[one.id]) for one in found]
        try:
            index = await self._index(owner)
            await index.delete(sorted(set(ids) - set(vectors)))
            await index.upsert(records)
        except REFUSALS as refusal:
            if len(ids) == 1:
                LOG.warning("observation %r of %r is in no vector index: %s", ids[0], owner, refusal)
                return 0
            return sum([await self._copy(owner, [one]) for one in ids])
        return len(records)

    async def _index(self, owner: str) -> VectorIndex:
        return await self._vectors.index(COLLECTION, owner)


def _batches(entries: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(entries), CATCH_UP_BATCH):
        yield entries[start : start + CATCH_UP_BATCH]


def cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """Return the cosine of two unit vectors, in [-1, 1]."""
    return float(np.clip(np.dot(left, right), -1.0, 1.0))
