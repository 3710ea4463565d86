"""What the ranking wants to know of a turn's text, as bits, so that it is read once, when the turn is written; pure."""

from __future__ import annotations

from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language

ASKS, CHANGES, ENDS, IS_DATED = 1, 2, 4, 8

VERSION = 1
"""To be raised with every change of these bits, of the phrases they look for, or of the stems: then a store reads all
its texts again."""


def signs_of(text: str, *, is_dated: bool, language: Language = ENGLISH) -> int:
    """Return the bits of a turn: it asks, it says what holds from then on, or no more, and its date is known.

    >>> signs_of("I no longer smoke.", is_dated=True) == CHANGES | ENDS | IS_DATED
    True
    """
    return (
        ASKS * text.rstrip().endswith("?")
        | CHANGES * bool(language.change.search(text))
        | ENDS * bool(language.ended.search(text))
        | IS_DATED * is_dated
    )
