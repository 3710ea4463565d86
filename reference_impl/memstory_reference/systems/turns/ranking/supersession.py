"""Which of two statements that compete is outdated: the older, if the newer one says so; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language
from memstory_reference.systems.turns.ranking.pool import Candidate, Pool

NEAR = 0.5
"""The cosine of two turns that may speak of the same thing; MiniLM gives unlike turns of one dialogue .1 to .3."""

HEADS = 2
"""Head words that both must have: one alone (a name) does not make it the same attribute."""

LOOKED_AT = 20
"""Of the best candidates: what is not near the top need not be pushed down."""


def superseded(pool: Pool, best: Sequence[int], language: Language = ENGLISH) -> Mapping[int, str]:
    """Return which of the candidates (by index) are outdated, and the id of the turn that says so.

    A turn is outdated by a newer one that is near to it, shares its head words, and says what holds from then on
    (`now`, `since`, `any more`, a negation).
    """
    looked = list(best)[:LOOKED_AT]
    if not looked:
        return {}
    vectors = np.stack([pool.candidates[place].vector for place in looked])
    nearness = vectors @ vectors.T
    found: dict[int, str] = {}
    for row, old in enumerate(looked):
        rivals = [
            pool.candidates[new]
            for column, new in enumerate(looked)
            if nearness[row, column] >= NEAR and _replaces(pool.candidates[new], pool.candidates[old], language)
        ]
        if rivals:
            newest = max(rivals, key=lambda one: (one.moment, one.place))
            found[old] = newest.id
    return found


def _replaces(new: Candidate, old: Candidate, language: Language) -> bool:
    if (new.moment, new.place) <= (old.moment, old.place):
        return False
    says_so = language.change.search(new.text) or language.ended.search(new.text)
    return bool(says_so) and len(_heads(new, language) & _heads(old, language)) >= HEADS


def _heads(candidate: Candidate, language: Language) -> frozenset[str]:
    return frozenset(candidate.stems) - language.empty - language.asking
