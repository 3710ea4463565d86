"""Candidates of both indexes to one ranked list (O-04, O-13, OF-3, OF-4, OF-19, OF-20)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.quality import Rank, rank
from memstory_reference.text.words import Keyword, matching_keywords

MIN_POOL = 20
POOL_FACTOR = 4
FEW_KEYWORDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationCandidate:
    """An observation with its cosine to the task; `by_keyword` says that the full-text index named it."""

    observation: Observation
    similarity: float
    by_keyword: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedObservation:
    """An observation in its place, with the numbers that put it there."""

    observation: Observation
    rank: Rank
    by_keyword: bool

    @property
    def normal_task(self) -> str:
        """The task without case and spacing."""
        return self.observation.normal_task


Run = TypeVar("Run", Observation, RankedObservation)


def pool_size(top_k: int) -> int:
    """Return how many candidates each index gives, so that quality can lift one from beyond the nearest.

    >>> pool_size(3), pool_size(10)
    (20, 40)
    """
    return max(POOL_FACTOR * top_k, MIN_POOL)


def is_admitted(candidate: ObservationCandidate, keywords: Sequence[Keyword], min_sim: float) -> bool:
    """Say whether a candidate is about the task: near enough, or named by two keywords or by one specific one."""
    if candidate.similarity >= min_sim:
        return True
    if not candidate.by_keyword:
        return False
    observation = candidate.observation
    text = " ".join((observation.title, observation.narrative, *observation.facts, observation.task))
    named = matching_keywords(keywords, text)
    return len(named) >= FEW_KEYWORDS or any(keyword.specific for keyword in named)


def rank_candidates(
    candidates: Iterable[ObservationCandidate], keywords: Sequence[Keyword], *, min_sim: float
) -> list[RankedObservation]:
    """Return what is about the task, best rank first.

    Ties go to the higher score, then the newer, then the lower id.
    """
    ranked = [
        RankedObservation(
            observation=candidate.observation,
            rank=rank(candidate.similarity, candidate.observation.final_score, candidate.observation.rating),
            by_keyword=candidate.by_keyword,
        )
        for candidate in candidates
        if is_admitted(candidate, keywords, min_sim)
    ]
    return sorted(ranked, key=_order)


def best_of_each_task(runs: Sequence[Run]) -> list[Run]:
    """Return the first of several runs of one task; the others would tell the same once more (OF-20)."""
    best: dict[str, Run] = {}
    for run in runs:
        best.setdefault(run.normal_task, run)
    return list(best.values())


def _order(entry: RankedObservation) -> tuple[float, float, float, str]:
    observation = entry.observation
    score = -1.0 if observation.final_score is None else observation.final_score
    return (-entry.rank.rank, -score, -observation.timestamp.timestamp(), observation.id)
