"""How turns are ranked for a question: what a store brings of each, what each part weighs, what is returned; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstory.contract.values import Tree
from memstory_reference.systems.turns.question import ENGLISH, Language, Question, Span, closeness, holding_share
from memstory_reference.systems.turns.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of z-scores over the pool, except where another unit is named. 0 switches a part off.

    docs/explanation/turns.md has what each part gains on each kind of talk.
    """

    cosine: float = 1.0
    """The measure of the others: nearness of question and turn."""
    words: float = 0.7
    """BM25: the words of the question, the rarer the more."""
    context: float = 0.3
    """Nearness of the question and the turn with those beside it: an answer alone may say little."""
    following: float = 0.25
    """Of the likeness of the turn after: who answers takes up what was said."""
    session: float = 0.5
    """Of the best likeness in the session: a conversation stays with its theme for a while."""
    speaker: float = 4.0
    """For a turn of the one who is asked about, who mostly speaks for himself."""
    date: float = 4.0
    """Times the closeness of the moment to a date in the question, 0 to 1.5."""
    length: float = 0.5
    """For the number of words, by its logarithm, where only people talk: short turns are near to everything."""
    person: float = 3.0
    """For a turn of a person, where a machine talks too: its long answers hold some sentence near to any question."""
    recent: float = 2.0
    """For newer turns, where the question is about the present."""
    update: float = 2.0
    """For a turn near to older ones that are the most like the question, where the question is about the present, or
    names a date that lies after both: who tells that something changed repeats little of what a question asks."""


ORIGINS = 3
"""How many turns, those most like the question, are followed: 2 to 10 are as good; one alone is often a near miss."""


K1, B = 1.2, 0.75
"""BM25's own defaults: how fast a repeated word stops counting, and how far long turns are marked down."""

NOBODY = -1
"""Where a turn has no session, no speaker, or no turn beside it in the pool."""

IS_DATED, BY_ASSISTANT, IS_FOREIGN = 1, 2, 4
"""Signs of a turn: the moment at which it was said is known; an assistant said it; no person said it."""

Numbers = NDArray[np.floating]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one owner: row i of each column is candidate i. `numbers` are ascending, in the order of adding.

    `before` and `after` are rows of the neighbours in the same session; `sessions` and `speakers` are codes that hold
    in this pool, `named` gives the code of a speaker. `moments` are microseconds since 1970, `signs` are bits. `times`
    has a row for each of `stems`, the question's: how often each candidate has it. `vectors` has a row for each
    candidate, and `contexts` the cosine of each together with the turns beside it.

    `holding` counts the owner's turns that have a stem, for the stems that any of them has.
    """

    numbers: Places
    before: Places
    after: Places
    sessions: Places
    speakers: Places
    named: Mapping[str, int]
    moments: Places
    signs: NDArray[np.uint8]
    words: Places
    cosines: Numbers
    contexts: Numbers
    vectors: NDArray[np.float32]
    stems: Sequence[str]
    times: Places
    holding: Mapping[str, int]
    turns: int
    mean_words: float

    def __len__(self) -> int:
        return len(self.numbers)

    def bm25(self) -> Numbers:
        """Return BM25 of each candidate."""
        return self._rarities() @ saturation(self.times, self.words, self.mean_words)

    def coverage(self) -> Numbers:
        """Return which share of the question each candidate has: of its stems, each by its rarity; 0 to 1."""
        rare = self._rarities()
        whole = rare.sum()
        share: Numbers = rare @ (self.times > 0) / whole if whole else np.zeros(len(self))
        return share

    def _rarities(self) -> Numbers:
        return np.array([rarity(self.holding.get(stem, 0), self.turns) for stem in self.stems], float)


def rarity(holding: int, turns: int) -> float:
    """Return the inverse document frequency of a stem that so many of the turns have."""
    return math.log(1 + (turns - holding + 0.5) / (holding + 0.5))


def saturation(times: NDArray[Any], words: NDArray[Any], mean_words: float) -> Numbers:
    """Return what BM25 makes of a stem that turns of so many words have so often, before its rarity counts."""
    norm = K1 * (1 - B + B * words / (mean_words or 1.0))
    counted: Numbers = times * (K1 + 1) / (times + norm)
    return counted


def with_neighbours(
    vectors: NDArray[np.float32], before: NDArray[np.float32], after: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the unit vector of each turn with half of those beside it; a row of zeros stands where there is none."""
    whole = vectors + (before + after) * np.float32(0.5)
    # The vector of a turn may have been lost.
    lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", whole, whole)), np.float32(1e-9))
    unit: NDArray[np.float32] = whole / lengths[:, None]
    return unit


def empty_pool(holding: Mapping[str, int] | None = None, turns: int = 0, mean_words: float = 0.0) -> Pool:
    """Return a pool without candidates."""
    none = np.zeros(0, np.int64)
    return Pool(
        **dict.fromkeys(("numbers", "before", "after", "sessions", "speakers", "moments", "words"), none),
        named={}, signs=np.zeros(0, np.uint8), cosines=np.zeros(0), contexts=np.zeros(0),
        vectors=np.zeros((0, 0), np.float32), stems=(), times=np.zeros((0, 0), np.int64), holding=holding or {},
        turns=turns, mean_words=mean_words,
    )  # fmt: skip


def rows_of(numbers: Places, wanted: Places) -> Places:
    """Return the row of each wanted number among ascending numbers, NOBODY for one that is not there."""
    if not len(numbers):
        return np.full(len(wanted), NOBODY, np.int64)
    rows = np.minimum(np.searchsorted(numbers, wanted), len(numbers) - 1)
    return np.where(numbers[rows] == wanted, rows, NOBODY)


def evidence(cosine: float, found: float) -> float:
    """Return how sure it is that a turn is about a question, whatever else is in the pool: from -1 to 1.

    The cosine, raised by the words that it has: all of them prove it, and half of them hardly anything.

    >>> evidence(0.5, 0.5), evidence(0.4, 0.0), evidence(0.4, 1.0)
    (0.5625, 0.4, 1.0)
    """
    return cosine + (1 - cosine) * found**3


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
