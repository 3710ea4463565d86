"""Candidates of both indexes to one ranked list, by `(0.7 * sim + 0.3 * qual) * q_adjust` (seed 001).

O-04, O-06 to O-10, O-13, OF-3, OF-4, OF-19, OF-20.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.systems.observations.observation import Observation
from memstory_reference.text.words import Keyword, matching_keywords

SIMILARITY_WEIGHT = 0.7
QUALITY_WEIGHT = 0.3
GOOD_SCORE = 7.0
UNSCORED_QUALITY = 0.5
RATING_STEP = 0.15
LOWEST_ADJUSTMENT = 0.2
MIN_POOL = 20
POOL_FACTOR = 4
FEW_KEYWORDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank with the three numbers that made it."""

    sim: float
    qual: float
    q_adjust: float
    rank: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedObservation:
    """An observation in its place, with the numbers that put it there; `by_keyword`: the index of words named it."""

    observation: Observation
    rank: Rank
    by_keyword: bool


def rank_candidates(
    candidates: Iterable[Observation],
    similarities: Mapping[str, float],
    named: Collection[str],
    keywords: Sequence[Keyword],
    *,
    min_sim: float,
) -> list[RankedObservation]:
    """Return what is about the task, best rank first; `similarities` to it are by id, `named` are ids by its keywords.

    Ties go to the higher score, then the newer, then the lower id.
    """
    ranked = []
    for one in candidates:
        similarity, by_keyword = similarities[one.id], one.id in named
        if is_admitted(one, similarity, keywords if by_keyword else (), min_sim):
            ranks = rank(similarity, one.final_score, one.rating)
            ranked.append(RankedObservation(observation=one, rank=ranks, by_keyword=by_keyword))
    return sorted(ranked, key=_order)


def is_admitted(observation: Observation, similarity: float, keywords: Sequence[Keyword], min_sim: float) -> bool:
    """Say whether an observation is about the task: near enough, or with two of its keywords or a specific one."""
    if similarity >= min_sim:
        return True
    text = " ".join((observation.title, observation.narrative, *observation.facts, observation.task))
    found = matching_keywords(keywords, text)
    return len(found) >= FEW_KEYWORDS or any(keyword.specific for keyword in found)


def best_of_each_task(runs: Sequence[RankedObservation]) -> list[RankedObservation]:
    """Return the first of several runs of one task; the others would tell the same once more (OF-20)."""
    best: dict[str, RankedObservation] = {}
    for run in runs:
        best.setdefault(run.observation.normal_task, run)
    return list(best.values())


def pool_size(top_k: int) -> int:
    """Return how many candidates each index gives, so that quality can lift one from beyond the nearest.

    >>> pool_size(3), pool_size(10)
    (20, 40)
    """
    return max(POOL_FACTOR * top_k, MIN_POOL)


def rank(sim: float, final_score: float | None, rating: float | None = None) -> Rank:
    """Rank one candidate. `sim` is cut to [0, 1]: below 0, a bad rating would improve a bad match (OF-2).

    >>> round(rank(0.9, 9.1).rank, 3), round(rank(0.9, 5.8).rank, 3)
    (0.903, 0.717)
    """
    sim = min(1.0, max(0.0, sim))
    qual, q_adjust = quality(final_score), adjustment(rating)
    return Rank(
        sim=sim, qual=qual, q_adjust=q_adjust, rank=(SIMILARITY_WEIGHT * sim + QUALITY_WEIGHT * qual) * q_adjust
    )


def similarity(distance: float) -> float:
    """Return the cosine of two unit vectors from their squared distance, as a vector index reports it (O-07).

    >>> [similarity(distance) for distance in (0, 0.5, 2, 4)]
    [1.0, 0.75, 0.0, -1.0]
    """
    return 1.0 - distance / 2.0


def quality(final_score: float | None) -> float:
    """Return the quality of a run scored 0 to 10: halved below 7, and 0.5 where no score was given.

    The cliff at 7 is the seed's: an unscored run outranks every run scored below it (OF-7).

    >>> [round(quality(score), 4) for score in (8.7, 7.0, 6.0, 0.0, None)]
    [0.87, 0.7, 0.3, 0.0, 0.5]
    """
    if final_score is None:
        return UNSCORED_QUALITY
    share = final_score / 10.0
    return share if final_score >= GOOD_SCORE else share * 0.5


def adjustment(rating: float | None) -> float:
    """Return the factor of a manual rating; never below 0.2.

    >>> [round(adjustment(rating), 2) for rating in (None, 1, -2, -10)]
    [1.0, 1.15, 0.7, 0.2]
    """
    return max(LOWEST_ADJUSTMENT, 1.0 + RATING_STEP * (rating or 0))


def _order(entry: RankedObservation) -> tuple[float, float, float, str]:
    observation = entry.observation
    score = -1.0 if observation.final_score is None else observation.final_score
    return (-entry.rank.rank, -score, -observation.timestamp.timestamp(), observation.id)
