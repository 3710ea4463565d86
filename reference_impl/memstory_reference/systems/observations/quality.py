"""Quality-weighted rank of an observation: `(0.7 * sim + 0.3 * qual) * q_adjust` (seed 001, O-06 to O-10)."""

from __future__ import annotations

from dataclasses import dataclass

SIMILARITY_WEIGHT = 0.7
QUALITY_WEIGHT = 0.3
GOOD_SCORE = 7.0
UNSCORED_QUALITY = 0.5
RATING_STEP = 0.15
LOWEST_ADJUSTMENT = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """A rank with the three numbers that made it."""

    sim: float
    qual: float
    q_adjust: float
    rank: float


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
