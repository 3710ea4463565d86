"""What each part of the ranking weighs, and why; round numbers from a plateau, the same for all kinds of talk."""

from __future__ import annotations

from dataclasses import dataclass


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
