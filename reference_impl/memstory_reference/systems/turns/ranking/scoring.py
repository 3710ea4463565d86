"""A pool of turns to one ranked list: twelve terms, each of which `explain` gives; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language
from memstory_reference.systems.turns.ranking.pool import Candidate, Pool, evidence
from memstory_reference.systems.turns.ranking.question import Question
from memstory_reference.systems.turns.ranking.spans import closeness, held
from memstory_reference.systems.turns.ranking.supersession import superseded
from memstory_reference.systems.turns.ranking.weighting import FULL_AGREEMENT, LEAST_AGREEMENT, Weights

Numbers = NDArray[np.float64]
_Value = Callable[[Candidate], float]
DIGITS = 6
"""Beyond them sums of the same parts may differ by their order; equal scores must tie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate in its place. `score` is relative to its pool, `evidence` is not: only that may be thresholded."""

    candidate: Candidate
    score: float
    evidence: float
    found: float
    terms: Mapping[str, float]
    superseded_by: str | None


def ranked(
    pool: Pool, question: Question, weights: Weights | None = None, language: Language = ENGLISH
) -> list[Ranked]:
    """Return the candidates, best first; ties by newer, then id."""
    if not pool.candidates:
        return []
    weights = weights or Weights()
    terms = _terms(pool, question, weights, language)
    scores = np.sum(list(terms.values()), axis=0)
    outdated: Mapping[int, str] = {}
    if weights.superseded and not question.is_about_past:
        outdated = superseded(pool, [int(place) for place in np.argsort(-scores, kind="stable")], language)
    terms["superseded"] = np.array([-weights.superseded * (place in outdated) for place in range(len(scores))], float)
    scores = (scores + terms["superseded"]).round(DIGITS)
    found = pool.found(question.stems)
    order = sorted(range(len(scores)), key=lambda place: _order(scores[place], pool.candidates[place]))
    return [
        Ranked(
            candidate=pool.candidates[place],
            score=float(scores[place]),
            evidence=round(evidence(pool.candidates[place].cosine, float(found[place])), DIGITS),
            found=round(float(found[place]), DIGITS),
            terms={name: round(float(values[place]), DIGITS) + 0.0 for name, values in terms.items()},  # no -0.0
            superseded_by=outdated.get(place),
        )
        for place in order
    ]


def agreement(words: Numbers, cosines: Numbers) -> float:
    """Return how far words may be trusted for this question: by their correlation with the vectors, over the pool.

    >>> agreement(np.array([1.0, 2.0]), np.array([0.1, 0.2])), agreement(np.array([1.0, 2.0]), np.array([0.2, 0.1]))
    (1.0, 0.3)
    """
    if not words.std() or not cosines.std():
        return 1.0
    correlation = float(np.corrcoef(words, cosines)[0, 1])
    return min(max(correlation / FULL_AGREEMENT, LEAST_AGREEMENT), 1.0)


def _terms(pool: Pool, question: Question, weights: Weights, language: Language) -> dict[str, Numbers]:
    candidates = pool.candidates
    cosines = np.array([one.cosine for one in candidates], float)
    bm25 = pool.bm25(question.stems)
    near = weights.cosine * _z(cosines)
    worded = weights.words * agreement(bm25, cosines) * _z(bm25)
    likeness = near + worded
    by_place: dict[int | None, float] = {
        one.place: float(value) for one, value in zip(candidates, likeness, strict=True)
    }
    now, asks = question.is_about_now, [one.text.rstrip().endswith("?") for one in candidates]
    fits = _each(candidates, lambda one: max((closeness(span, one.moment) for span in question.spans), default=0.0))
    holds = _each(candidates, lambda one: max((held(span, one.moment) for span in question.spans), default=0.0))
    dated = _each(candidates, lambda one: float(one.is_dated))
    changes = _each(candidates, lambda one: float(bool(language.change.search(one.text))))
    about_change = changes * (holds > 0) if not now else changes
    newest_last = sorted(range(len(candidates)), key=lambda place: (candidates[place].moment, candidates[place].place))
    age = np.argsort(newest_last).astype(float)
    return {
        "cosine": near,
        "words": worded,
        "previous": weights.previous * _each(candidates, lambda one: by_place.get(one.before, 0.0)),
        "following": weights.following * _each(candidates, lambda one: by_place.get(one.after, 0.0)),
        "session": weights.session * _z(_best_of_session(candidates, likeness)),
        "speaker": weights.speaker * _each(candidates, lambda one: float((one.speaker,) == question.named)),
        "date": weights.date * dated * np.maximum(fits, holds),
        "question": -weights.question * np.array(asks, float),
        "length": weights.length * _z(np.log1p(_each(candidates, lambda one: float(len(one.stems))))),
        "recent": weights.recent * now * _z(age),
        "change": weights.change * dated * about_change,
    }


def _best_of_session(candidates: Sequence[Candidate], likeness: Numbers) -> Numbers:
    best: dict[str, float] = {}
    for one, value in zip(candidates, likeness, strict=True):
        if one.session is not None:
            best[one.session] = max(best.get(one.session, -np.inf), float(value))
    if not best:
        return np.zeros(len(candidates))
    lowest = min(best.values())
    return np.array([lowest if one.session is None else best[one.session] for one in candidates], float)


def _z(values: Numbers) -> Numbers:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values))  # noqa: PLR2004  (rounding)


def _each(candidates: Sequence[Candidate], value: _Value) -> Numbers:
    return np.array([value(one) for one in candidates], float)


def _order(score: float, candidate: Candidate) -> tuple[float, float, str]:
    return (-score, -candidate.moment.timestamp(), candidate.id)
