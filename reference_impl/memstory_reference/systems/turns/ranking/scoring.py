"""A pool of turns to one ranked list: thirteen terms, each of which `explain` gives; pure.

First all candidates are scored by columns; only of the best of them are the texts read, and looked at for one that
replaces another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language
from memstory_reference.systems.turns.ranking.pool import NOBODY, Numbers, Places, Pool, evidence
from memstory_reference.systems.turns.ranking.question import Question
from memstory_reference.systems.turns.ranking.signs import ASKS, CHANGES, IS_DATED
from memstory_reference.systems.turns.ranking.spans import Span, closeness, held
from memstory_reference.systems.turns.ranking.supersession import LOOKED_AT, outranked, superseded
from memstory_reference.systems.turns.ranking.weighting import FULL_AGREEMENT, LEAST_AGREEMENT, ORIGINS, Weights
from memstory_reference.systems.turns.turn import Turn

DIGITS = 6
"""Beyond them sums of the same parts may differ by their order; equal scores must tie."""

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Candidates in their first order: `order` has their rows, best first. `terms` are columns, as of the pool."""

    pool: Pool
    question: Question
    weights: Weights
    terms: Mapping[str, Numbers]
    scores: Numbers
    evidence: Numbers
    found: Numbers
    order: Places

    def to_read(self, size: int, floor: float) -> Places:
        """Return the rows whose turns decide about the best `size` with at least `floor` evidence."""
        passing = self.order[self.evidence[self.order] >= floor][: size + LOOKED_AT]
        return np.union1d(self.order[:LOOKED_AT], passing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A turn in its place. `score` is relative to its pool, `evidence` is not: only that may be thresholded."""

    turn: Turn
    score: float
    evidence: float
    found: float
    similarity: float
    terms: Mapping[str, float]
    superseded_by: str | None


def scored(pool: Pool, question: Question, weights: Weights | None = None) -> Scored:
    """Return what can be said of the candidates without their texts."""
    weights = weights or Weights()
    terms = _terms(pool, question, weights) if len(pool) else {}
    scores = np.sum(list(terms.values()), axis=0).round(DIGITS) if terms else np.zeros(0)
    found = pool.found() if len(pool) else np.zeros(0)
    sure = np.round(evidence(pool.cosines, found), DIGITS)  # type: ignore[arg-type]  # columns are numbers too
    order = np.lexsort((pool.numbers, -pool.moments, -scores))
    return Scored(
        pool=pool,
        question=question,
        weights=weights,
        terms=terms,
        scores=scores,
        evidence=sure,
        found=found,
        order=order,
    )


def ranked(
    first: Scored,
    turns: Mapping[int, Turn],
    *,
    size: int | None = None,
    floor: float = -1.0,
    language: Language = ENGLISH,
) -> list[Ranked]:
    """Return the best of those whose `turns` (by row) were read and have the evidence; ties by newer, then id."""
    outdated: dict[int, int] = {}
    best, texts = [int(row) for row in first.order], {row: turn.text for row, turn in turns.items()}
    foreign = frozenset(row for row, turn in turns.items() if turn.is_foreign)
    if not first.question.is_about_past:
        outdated.update(superseded(first.pool, best, texts, language, foreign))
    weight = first.weights.superseded * first.question.is_about_now
    score = {row: round(float(first.scores[row]) - weight * (row in outdated), DIGITS) for row in turns}
    for row, own in outranked(first.pool, best, texts, foreign, language).items():
        outdated[row] = min(own, key=score.__getitem__)
        score[row] = round(min(score[row], score[outdated[row]] - 10**-DIGITS), DIGITS)
    passing = [row for row in turns if first.evidence[row] >= floor]
    passing.sort(key=lambda row: (-score[row], -int(first.pool.moments[row]), turns[row].id))
    terms = [(name, values[passing[:size]].round(DIGITS) + 0.0) for name, values in first.terms.items()]  # no -0.0
    return [
        Ranked(
            turn=turns[row],
            score=score[row],
            evidence=float(first.evidence[row]),
            found=round(float(first.found[row]), DIGITS),
            similarity=round(float(first.pool.cosines[row]), DIGITS),
            terms={name: float(values[place]) for name, values in terms}
            | {"superseded": round(score[row] - float(first.scores[row]), DIGITS) + 0.0},
            superseded_by=turns[outdated[row]].id if row in outdated else None,
        )
        for place, row in enumerate(passing[:size])
    ]


def together(lists: Sequence[Sequence[Ranked]]) -> list[Ranked]:
    """Return what was found for the events of one question, by how far each is behind the best for its event."""
    if len(lists) == 1:
        return list(lists[0])
    best = dict[str, Ranked]()
    for found in lists:
        for one in found:
            behind = replace(one, score=round(one.score - found[0].score, DIGITS))
            known = best.get(one.turn.id)
            if known is None or behind.score > known.score:
                best[one.turn.id] = replace(behind, terms={**one.terms, "event": -found[0].score})
    return sorted(best.values(), key=lambda one: (-one.score, -one.turn.moment.timestamp(), one.turn.id))


def agreement(words: Numbers, cosines: Numbers) -> float:
    """Return how far words may be trusted for this question: by their correlation with the vectors, over the pool.

    >>> agreement(np.array([1.0, 2.0]), np.array([0.1, 0.2])), agreement(np.array([1.0, 2.0]), np.array([0.2, 0.1]))
    (1.0, 0.3)
    """
    one, other = _z(words), _z(cosines)
    if not one.any() or not other.any():
        return 1.0
    correlation = float(one @ other) / len(words)
    return min(max(correlation / FULL_AGREEMENT, LEAST_AGREEMENT), 1.0)


def _terms(pool: Pool, question: Question, weights: Weights) -> dict[str, Numbers]:
    bm25 = pool.bm25()
    near = weights.cosine * _z(pool.cosines)
    worded = weights.words * agreement(bm25, pool.cosines) * _z(bm25)
    likeness = near + worded
    now, dated = question.is_about_now, pool.signs & IS_DATED > 0
    fits, holds = _by_day(pool, question, closeness), _by_day(pool, question, held)
    may_update = np.ones(len(pool), np.bool_) if now else dated & (holds > 0)
    changes = may_update & (pool.signs & CHANGES > 0)
    meant = pool.named.get(question.named[0], NOBODY) if len(question.named) == 1 else NOBODY
    age = np.empty(len(pool))
    age[np.lexsort((pool.numbers, pool.moments))] = np.arange(len(pool))
    return {
        "cosine": near,
        "words": worded,
        "previous": weights.previous * _beside(likeness, pool.before),
        "following": weights.following * _beside(likeness, pool.after),
        "session": weights.session * _z(_best_of_session(pool.sessions, likeness)),
        "speaker": weights.speaker * ((pool.speakers == meant) & (meant != NOBODY)),
        "date": weights.date * dated * np.maximum(fits, holds),
        "question": -weights.question * (pool.signs & ASKS > 0),
        "length": weights.length * _z(np.log1p(pool.words)),
        "recent": weights.recent * now * _z(age),
        "change": weights.change * (dated & changes),
        "update": weights.update * (1 + changes) / 2 * _updates(pool, likeness, age, may_update),
    }


def _updates(pool: Pool, likeness: Numbers, age: Numbers, may_update: NDArray[np.bool_]) -> Numbers:
    """Return how near each of those turns is to the older of them that are most like the question; 0 if not near."""
    if not may_update.any():
        return np.zeros(len(pool))
    like = np.argsort(-likeness.round(DIGITS), kind="stable")
    origins = like[may_update[like]][:ORIGINS]
    near = np.array([_z(row) for row in (pool.vectors[origins] @ pool.vectors.T).astype(np.float64)])
    newer = may_update & (age[origins][:, None] < age)
    mean: Numbers = np.where(newer, np.maximum(near, 0.0), 0.0).mean(axis=0)
    return mean


def _by_day(pool: Pool, question: Question, fit: Callable[[Span, datetime], float]) -> Numbers:
    """Return how well each candidate fits the dates of the question; many were said on the same day."""
    if not question.spans:
        return np.zeros(len(pool))
    days, which = np.unique(pool.moments // _DAY, return_inverse=True)
    noons = [datetime(1970, 1, 1, 12, tzinfo=UTC) + timedelta(days=int(day)) for day in days]
    return np.array([max(fit(span, noon) for span in question.spans) for noon in noons])[which]


def _beside(likeness: Numbers, rows: Places) -> Numbers:
    return np.where(rows == NOBODY, 0.0, likeness[rows])


def _best_of_session(sessions: Places, likeness: Numbers) -> Numbers:
    _, which = np.unique(sessions, return_inverse=True)
    best = np.full(which.max() + 1, -np.inf)
    np.maximum.at(best, which, likeness)
    known = best[which[sessions != NOBODY]]
    return np.where(sessions == NOBODY, known.min(initial=np.inf), best[which]) if len(known) else np.zeros(len(which))


def _z(values: Numbers) -> Numbers:
    off = values - values.mean()
    spread = math.sqrt(off @ off / len(values))
    return off / spread if spread > 1e-9 else np.zeros(len(values))  # noqa: PLR2004  (rounding)
