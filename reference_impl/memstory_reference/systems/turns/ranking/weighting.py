"""What each part of the ranking weighs, and why; round numbers from a plateau, the same for all data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of z-scores over the pool, except where another unit is named. 0 switches a part off.

    docs/explanation/turns.md has what each part gains.
    """

    cosine: float = 1.0
    """The measure of the others: nearness of question and turn."""
    words: float = 1.0
    """BM25, times how far it agrees with the vectors for this question: see `agreement`."""
    previous: float = 0.25
    """Of the likeness of the turn before: an answer has the words of its question beside it."""
    following: float = 0.125
    """Of the likeness of the turn after: half as telling, for a reaction repeats less."""
    session: float = 0.5
    """Of the best likeness in the session: a conversation stays with its theme for a while."""
    speaker: float = 4.0
    """For a turn of the one known person that is asked about, who mostly speaks for himself."""
    date: float = 4.0
    """Times the closeness of the moment to a date in the question, 0 to 1.5."""
    question: float = 1.0
    """Taken from a turn that asks: it has the words, and somebody else the answer."""
    length: float = 0.5
    """For the number of words, by its logarithm: short turns say little and are near to everything."""
    recent: float = 2.0
    """For newer turns, where the question is about the present."""
    change: float = 2.0
    """For a turn that says what holds from some moment on, where the question is about the present, or names a date
    that lies after the turn."""
    update: float = 2.0
    """For a turn near to older ones that are the most like the question, where the question is about the present, or
    names a date that lies after both: who tells that something changed repeats little of what a question asks. Half,
    unless the turn says what holds from some moment on."""
    superseded: float = 1.0
    """Taken from a turn that a newer one replaces, where the question is about the present: elsewhere what is outdated
    may be the answer, and `explain` names it all the same."""


FULL_AGREEMENT = 0.4
"""The correlation of BM25 and cosine over the pool from which on words count in full. Questions that were written from
the turns have .5 and more; where they were worded apart, words mislead."""

LEAST_AGREEMENT = 0.3
"""What words weigh in any case: a rare name is a witness that no vector has."""

ORIGINS = 3
"""How many turns, those most like the question, are followed: 2 to 10 are as good; one alone is often a near miss."""
