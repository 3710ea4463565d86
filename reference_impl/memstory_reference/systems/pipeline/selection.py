"""Steps 5 and 6 of a recall: re-rank if asked to, then take what the budget holds (P-17 to P-19)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.systems.pipeline.chunk import RecalledMemory
from memstory_reference.text.words import extract_keywords, matching_keywords

OFF = "off"
BLEND = "blend"
COSINE_WEIGHT = 0.7
COVERAGE_WEIGHT = 0.3


class Reranker(Protocol):
    """A model that scores pairs of a query and a text; higher is better, in any range."""

    name: str

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return one finite score a text; UnavailableError or SetupError where the model cannot be had."""
        ...


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
