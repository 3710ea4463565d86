"""A pool of turns to one ranked list: eleven terms, each of which `explain` gives; pure.

First all candidates are scored by columns; only of the best of them are the texts read, and looked at for what no
person said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memstory.contract.values import Tree
from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language
from memstory_reference.systems.turns.ranking.pool import (
    BY_ASSISTANT,
    IS_DATED,
    IS_FOREIGN,
    NOBODY,
    Numbers,
    Places,
    Pool,
    evidence,
)
from memstory_reference.systems.turns.ranking.question import Question
from memstory_reference.systems.turns.ranking.spans import Span, closeness, holding_share
from memstory_reference.systems.turns.ranking.weighting import ORIGINS, Weights
from memstory_reference.systems.turns.turn import Turn

DIGITS = 6
"""Beyond them sums of the same parts may differ by their order; equal scores must tie."""

LOOKED_AT = 20
"""Of the best candidates: what is not near the top need not be pushed down."""

NEAR = 0.5
"""The cosine of two turns that may speak of the same thing; MiniLM gives unlike turns of one dialogue .1 to .3."""

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateScores:
    """Candidates in their first order: `order` has their rows, best first. `terms` are columns, as of the pool."""

    pool: Pool
    terms: Mapping[str, Numbers]
    scores: Numbers
    evidence: Numbers
    found: Numbers
    order: Places

    def to_read(self, size: int, floor: float) -> Places:
        """Return the rows whose turns decide about the best `size` with at least `floor` evidence."""
        passing: Places = self.order[self.evidence[self.order] >= floor]
        if not (self.pool.signs[self.order[:LOOKED_AT]] & IS_FOREIGN).any():
            # Equal ones are told apart by their ids, which stand beside the texts.
            as_good: Places = passing[self.scores[passing] >= self.scores[passing[:size]].min(initial=np.inf)]
            return as_good
        return np.union1d(self.order[:LOOKED_AT], passing[: size + LOOKED_AT])


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedTurn:
    """A turn in its place. `score` is relative to its pool, `evidence` is not: only that may be thresholded.

    `answerable` is the best evidence of all candidates, `outranked_by` the turn of a person that stands before it.
    """

    turn: Turn
    score: float
    evidence: float
    answerable: float
    found: float
    similarity: float
    terms: Mapping[str, float]
    outranked_by: str | None

    def explain(self) -> dict[str, Tree]:
        """Return every term of the score, and what stands beside it.

        `evidence` and `answerable`, the best evidence for this question, may be compared between questions.
        """
        return {
            **self.terms,
            "similarity": self.similarity,
            "words_found": self.found,
            "evidence": self.evidence,
            "answerable": self.answerable,
            "outranked_by": self.outranked_by,
        }


def score_candidates(pool: Pool, question: Question, weights: Weights | None = None) -> CandidateScores:
    """Return what can be said of the candidates without their texts."""
    terms = _terms(pool, question, weights or Weights()) if len(pool) else {}
    scores = np.sum(list(terms.values()), axis=0).round(DIGITS) if terms else np.zeros(0)
    found = pool.coverage() if len(pool) else np.zeros(0)
    sure = np.round(evidence(pool.cosines, found), DIGITS)  # type: ignore[arg-type]  # columns are numbers too
    order = np.lexsort((pool.numbers, -pool.moments, -scores))
    return CandidateScores(pool=pool, terms=terms, scores=scores, evidence=sure, found=found, order=order)


def rank_turns(
    first: CandidateScores,
    turns: Mapping[int, Turn],
    *,
    size: int | None = None,
    floor: float = -1.0,
    language: Language = ENGLISH,
) -> list[RankedTurn]:
    """Return the best of those whose `turns` (by row) were read and have the evidence; ties by newer, then id."""
    score = {row: float(first.scores[row]) for row in turns}
    behind = dict[int, int]()
    for row, own in _find_outranked(first, turns, language).items():
        behind[row] = min(own, key=score.__getitem__)
        score[row] = round(min(score[row], score[behind[row]] - 10**-DIGITS), DIGITS)
    passing = [row for row in turns if first.evidence[row] >= floor]
    passing.sort(key=lambda row: (-score[row], -int(first.pool.moments[row]), turns[row].id))
    terms = [(name, values[passing[:size]].round(DIGITS) + 0.0) for name, values in first.terms.items()]  # no -0.0
    return [
        RankedTurn(
            turn=turns[row],
            score=score[row],
            evidence=float(first.evidence[row]),
            answerable=float(first.evidence.max()),
            found=round(float(first.found[row]), DIGITS),
            similarity=round(float(first.pool.cosines[row]), DIGITS),
            terms={name: float(values[place]) for name, values in terms}
            | {"outranked": round(score[row] - float(first.scores[row]), DIGITS) + 0.0},
            outranked_by=turns[behind[row]].id if row in behind else None,
        )
        for place, row in enumerate(passing[:size])
    ]


def merge_rankings(lists: Sequence[Sequence[RankedTurn]]) -> list[RankedTurn]:
    """Return what was found for the events of one question, by how far each is behind the best for its event."""
    if len(lists) == 1:
        return list(lists[0])
    best = dict[str, RankedTurn]()
    for found in lists:
        for one in found:
            behind = replace(one, score=round(one.score - found[0].score, DIGITS))
            known = best.get(one.turn.id)
            if known is None or behind.score > known.score:
                best[one.turn.id] = replace(behind, terms={**one.terms, "event": -found[0].score})
    return sorted(best.values(), key=lambda one: (-one.score, -one.turn.moment.timestamp(), one.turn.id))


def _terms(pool: Pool, question: Question, weights: Weights) -> dict[str, Numbers]:
    near, worded = weights.cosine * z_scores(pool.cosines), weights.words * z_scores(pool.bm25())
    context = weights.context * z_scores(pool.contexts)
    likeness = near + worded + context
    foreign, dated = pool.signs & IS_FOREIGN > 0, pool.signs & IS_DATED > 0
    fits, holds = _by_day(pool, question, closeness), _by_day(pool, question, holding_share)
    may_update = np.ones(len(pool), np.bool_) if question.is_about_now else dated & (holds > 0)
    age = np.empty(len(pool))
    age[np.lexsort((pool.numbers, pool.moments))] = np.arange(len(pool))
    return {
        "cosine": near,
        "words": worded,
        "context": context,
        "following": weights.following * np.where(pool.after == NOBODY, 0.0, likeness[pool.after]),
        "session": weights.session * z_scores(_best_of_session(pool.sessions, likeness)),
        "speaker": weights.speaker * _is_meant(pool, question),
        "date": weights.date * dated * np.maximum(fits, holds),
        "length": weights.length * (not foreign.any()) * z_scores(np.log1p(pool.words)),
        "person": weights.person * (foreign.any() and not question.asks_assistant) * ~foreign,
        "recent": weights.recent * question.is_about_now * z_scores(age),
        "update": weights.update * _updates(pool, likeness, age, may_update),
    }


def _is_meant(pool: Pool, question: Question) -> NDArray[np.bool_]:
    """Say of each candidate whether the one who is asked about said it: "you" is the assistant, where there is one."""
    by_assistant: NDArray[np.bool_] = pool.signs & BY_ASSISTANT > 0
    if question.asks_assistant and by_assistant.any():
        return by_assistant
    meant = pool.named.get(question.named[0], NOBODY) if len(question.named) == 1 else NOBODY
    is_meant: NDArray[np.bool_] = (pool.speakers == meant) & (meant != NOBODY)
    return is_meant


def _updates(pool: Pool, likeness: Numbers, age: Numbers, may_update: NDArray[np.bool_]) -> Numbers:
    """Return how near each of those turns is to the older of them that are most like the question; 0 if not near."""
    if not may_update.any():
        return np.zeros(len(pool))
    like = np.argsort(-likeness.round(DIGITS), kind="stable")
    origins = like[may_update[like]][:ORIGINS]
    near = np.array([z_scores(row) for row in (pool.vectors[origins] @ pool.vectors.T).astype(np.float64)])
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


def _best_of_session(sessions: Places, likeness: Numbers) -> Numbers:
    _, which = np.unique(sessions, return_inverse=True)
    best = np.full(which.max() + 1, -np.inf)
    np.maximum.at(best, which, likeness)
    known = best[which[sessions != NOBODY]]
    return np.where(sessions == NOBODY, known.min(initial=np.inf), best[which]) if len(known) else np.zeros(len(which))


def z_scores(values: Numbers) -> Numbers:
    """Return how many standard deviations each value lies above the mean; 0 where all are equal.

    Cosines and BM25 can be added so. Ranks would forget how far apart two candidates are; the sums are relative to
    these candidates, and no measure of any alone.

    >>> z_scores(np.array([1.0, 3.0])).tolist(), z_scores(np.array([2.0, 2.0])).tolist()
    ([-1.0, 1.0], [0.0, 0.0])
    """
    off = values - values.mean()
    spread = math.sqrt(off @ off / len(values))
    return off / spread if spread > 1e-9 else np.zeros(len(values))  # noqa: PLR2004  (rounding)


def _find_outranked(
    first: CandidateScores, turns: Mapping[int, Turn], language: Language
) -> Mapping[int, Sequence[int]]:
    """Return for what no person said, of the best candidates, what persons said that is near and shares a head word.

    Whom the question asks about is left in his place.
    """
    looked = [int(row) for row in first.order[:LOOKED_AT] if row in turns]
    own = [row for row in looked if not turns[row].is_foreign]
    others = [row for row in looked if turns[row].is_foreign and not first.terms["speaker"][row]]
    if not own or not others:
        return {}
    heads = {row: frozenset(turns[row].stems) - language.empty - language.asking for row in looked}
    near = first.pool.vectors[others] @ first.pool.vectors[own].T >= NEAR
    found = {
        row: [mine for mine, close in zip(own, is_near, strict=True) if close and heads[mine] & heads[row]]
        for row, is_near in zip(others, near, strict=True)
    }
    return {row: rivals for row, rivals in found.items() if rivals}
