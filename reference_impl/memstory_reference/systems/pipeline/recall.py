"""Section 2 of the specification: from a query to the memories that fit its budget (P-13 to P-20).

A recall is for a prompt: preferences come first, whatever is asked (P-19). A search is for a ranking: preferences are
found by their vectors, too, and all are in the order of their scores.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.ports import Purpose
from memstory_reference.systems.pipeline.chunk import (
    BY_VECTOR,
    ChunkType,
    MemoryChunk,
    RecalledMemory,
    RecallResult,
    Vector,
)
from memstory_reference.systems.pipeline.parts import PipelineParts, Reranker
from memstory_reference.systems.pipeline.pipeline_store import Admission, PipelineStore
from memstory_reference.systems.pipeline.prompt_block import prompt_block
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.systems.pipeline.tables import MEMORIES, PREFERENCES
from memstory_reference.text.words import extract_keywords, matching_keywords

OFF = "off"
BLEND = "blend"
COSINE_WEIGHT = 0.7
COVERAGE_WEIGHT = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """A recall whose arguments have been checked. `kinds` are the types wanted."""

    query: str
    user_id: str
    top_k: int
    token_budget: int
    kinds: Sequence[ChunkType]
    session_id: str | None
    include_compressed: bool
    rerank: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Recaller:
    """Finds memories; reads only."""

    store: PipelineStore
    parts: PipelineParts
    config: PipelineSettings

    async def recall(self, ask: RecallRequest) -> RecallResult:
        """Return preferences, newest first, then the others by score, as far as they fit.

        The newest preferences share `procedural_share` of the budget; others compete for the places of `top_k`, and
        what is left of the budget in the end goes to the newest again.
        """
        if ask.top_k == 0 or ask.token_budget == 0:
            return self._result([], ask.token_budget, OFF)
        newest, has_more, has_others = await self.store.run(
            PipelineStore.overview, ask.user_id, self.config.max_procedural
        )
        wants_stated = ChunkType.PROCEDURAL in ask.kinds
        stated = [self._measure(memory) for memory in newest if wants_stated]
        first = _fitting(stated, int(ask.token_budget * self.config.procedural_share), len(stated))
        left = ask.token_budget - sum(one.tokens for one in first)
        # Nothing to search, nothing to embed: preferences are recalled while the embedder is down (P-12).
        told = {one.memory.id for one in first}
        is_searched = (has_more and wants_stated) or (has_others and set(ask.kinds) & set(BY_VECTOR))
        # Where all statements are returned, none is left to be found.
        left_out = None if not has_more and len(told) == len(stated) else told
        found, by = await self._find(ask, left_out) if is_searched and ask.query.strip() else ([], OFF)
        chosen = _fitting(found, left, ask.top_k)
        left -= sum(one.tokens for one in chosen)
        told |= {one.memory.id for one in chosen}
        waiting = [one for one in stated if one.memory.id not in told]
        told |= {one.memory.id for one in _fitting(waiting, left, len(waiting))}
        first = [one for one in stated if one.memory.id in told]
        newest_ids = {one.memory.id for one in stated}
        older = [one for one in chosen if one.memory.key is not None and one.memory.id not in newest_ids]
        others = [one for one in chosen if one.memory.key is None]
        return self._result([*first, *older, *others], ask.token_budget, by)

    async def search(self, ask: RecallRequest) -> RecallResult:
        """Return the memories of all types by score, as far as they fit."""
        if ask.top_k == 0 or ask.token_budget == 0 or not ask.query.strip():
            return self._result([], ask.token_budget, OFF)
        found, by = await self._find(ask)
        return self._result(_fitting(found, ask.token_budget, ask.top_k), ask.token_budget, by)

    async def _find(self, ask: RecallRequest, told: Collection[str] | None = ()) -> tuple[list[RecalledMemory], str]:
        """Return what the query finds except for preferences `told` already, or all of them; and what scored it."""
        (vector,) = await self.parts.embedder.embed([ask.query], Purpose.QUERY)
        kinds = [kind for kind in BY_VECTOR if kind in ask.kinds]
        candidates = await self._candidates(ask, vector, kinds) if kinds else []
        if ChunkType.PROCEDURAL in ask.kinds and told is not None:
            candidates += await self._search_preferences(ask, vector, told)
            candidates.sort(key=lambda one: (-(one.similarity or 0.0), one.memory.id))
        if not ask.rerank:
            return candidates, OFF
        return await rerank(ask.query, candidates, self.parts.reranker)

    async def _search_preferences(
        self, ask: RecallRequest, vector: Vector, told: Collection[str]
    ) -> list[RecalledMemory]:
        wanted = ask.top_k * self.config.candidates_factor + len(told)
        similarities = await self.store.similar(PREFERENCES, ask.user_id, vector, wanted)
        ids = [one for one in similarities if one not in told]
        found = await self.store.run(PipelineStore.get, ask.user_id, ids) if ids else []
        return [self._measure(memory, similarities[memory.id]) for memory in found]

    async def _candidates(self, ask: RecallRequest, vector: Vector, kinds: Sequence[ChunkType]) -> list[RecalledMemory]:
        wanted = ask.top_k * self.config.candidates_factor
        admission = Admission(
            kinds=kinds,
            least_importance=self.config.recall_threshold,
            working_since=self.parts.clock.now() - timedelta(hours=self.config.working_hours),
            include_compressed=ask.include_compressed,
            session=ask.session_id,
        )
        if not ask.include_compressed:
            similarities = await self.store.similar(MEMORIES, ask.user_id, vector, wanted)
            admitted = await self.store.run(PipelineStore.admit, ask.user_id, list(similarities), admission)
            if len(similarities) < wanted or len(admitted) >= wanted:
                return self._rank(admitted, similarities)
        # No archive is among them, or what is near is not wanted: look at every row that is, so that nothing starves.
        similarities = await self.store.run(PipelineStore.nearest, ask.user_id, vector, wanted, admission)
        admitted = await self.store.run(PipelineStore.admit, ask.user_id, list(similarities), admission)
        return self._rank(admitted, similarities)

    def _rank(self, admitted: dict[str, MemoryChunk], similarities: Mapping[str, float]) -> list[RecalledMemory]:
        # A damaged row may have another id than its place in an index.
        order = sorted(admitted.keys() & similarities.keys(), key=lambda one: (-similarities[one], one))
        return [self._measure(admitted[one], similarities[one]) for one in order]

    def _measure(self, memory: MemoryChunk, similarity: float | None = None) -> RecalledMemory:
        tokens = self.parts.counter.count(memory.content)
        return RecalledMemory(memory=memory, tokens=tokens, score=similarity, similarity=similarity)

    def _result(self, memories: Sequence[RecalledMemory], budget: int, by: str) -> RecallResult:
        total = sum(one.tokens for one in memories)
        block = prompt_block([one.memory for one in memories], episodic_date_prefix=self.config.episodic_date_prefix)
        return RecallResult(
            memories=tuple(memories),
            block=block,
            total_tokens=total,
            budget_used=total / budget if budget else 0.0,
            assembled_tokens=self.parts.counter.count(block),
            rerank=by,
            token_counter=self.parts.counter.name,
        )


def keyword_coverage(query: str, text: str) -> float:
    """Return the share of the query's words that carry meaning and occur in `text`; 0 for a query without any.

    >>> keyword_coverage("the tabs or the spaces", "Tabs, please.")
    0.5
    """
    keywords = extract_keywords(query)
    return len(matching_keywords(keywords, text)) / len(keywords) if keywords else 0.0


def blend(similarity: float, share: float) -> float:
    """Return the score that stands in for a cross-encoder (PF-18).

    >>> round(blend(0.5, 1.0), 2)
    0.65
    """
    return COSINE_WEIGHT * similarity + COVERAGE_WEIGHT * share


async def rerank(
    query: str, candidates: Sequence[RecalledMemory], reranker: Reranker | None
) -> tuple[list[RecalledMemory], str]:
    """Return the candidates by their new score, and what scored them: the model, or the blend where there is none."""
    scores = await _model_scores(query, candidates, reranker)
    by = reranker.name if reranker and scores is not None else BLEND
    if scores is None:
        scores = [blend(one.similarity or 0.0, keyword_coverage(query, one.memory.content)) for one in candidates]
    scored = [replace(one, score=float(score)) for one, score in zip(candidates, scores, strict=True)]
    return sorted(scored, key=lambda one: (-(one.score or 0.0), one.memory.id)), by


async def _model_scores(
    query: str, candidates: Sequence[RecalledMemory], reranker: Reranker | None
) -> Sequence[float] | None:
    if reranker is None:
        return None
    try:
        scores = await reranker.scores(query, [one.memory.content for one in candidates])
    except (UnavailableError, SetupError):
        # Asked for by the specification; the result names the blend, so nobody takes it for the model's word.
        return None
    is_sound = len(scores) == len(candidates) and all(math.isfinite(score) for score in scores)
    return scores if is_sound else None


def _fitting(memories: Sequence[RecalledMemory], budget: int, most: int) -> list[RecalledMemory]:
    return [memories[place] for place in fit_budget([one.tokens for one in memories], budget, most)]


def fit_budget(sizes: Sequence[int], budget: int, most: int) -> list[int]:
    """Return the places, in order, that fit into `budget` tokens: what does not fit is skipped, `most` end the walk.

    >>> fit_budget([60, 50, 40, 30], 100, 5), fit_budget([1, 1], 10, 0)
    ([0, 2], [])
    """
    chosen: list[int] = []
    used = 0
    for place, size in enumerate(sizes):
        if len(chosen) >= most:
            break
        if used + size <= budget:
            chosen.append(place)
            used += size
    return chosen
