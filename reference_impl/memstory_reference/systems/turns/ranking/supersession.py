"""Which of two statements that compete comes first; pure.

The newer one, if it says that something changed; and the user's own, whatever its age, before what a page, a tool or
the assistant says of the same thing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language
from memstory_reference.systems.turns.ranking.pool import Pool
from memstory_reference.systems.turns.ranking.signs import CHANGES, ENDS
from memstory_reference.text.stems import stems

NEAR = 0.5
"""The cosine of two turns that may speak of the same thing; MiniLM gives unlike turns of one dialogue .1 to .3."""

HEADS = 2
"""Head words that both must have: one alone (a name) does not make it the same attribute."""

LOOKED_AT = 20
"""Of the best candidates: what is not near the top need not be pushed down."""


def superseded(
    pool: Pool,
    best: Sequence[int],
    texts: Mapping[int, str],
    language: Language = ENGLISH,
    foreign: Collection[int] = (),
) -> Mapping[int, int]:
    """Return which of the best candidates are outdated, and by which other: rows of the pool. `texts` are by row.

    A turn is outdated by a newer one that is near to it, shares its head words, and says what holds from then on
    (`now`, `since`, `any more`, a negation). What the user said is not outdated by a `foreign` row.
    """
    looked = [row for row in best[:LOOKED_AT] if row in texts]
    says_so = [row for row in looked if pool.signs[row] & (CHANGES | ENDS)]
    if not says_so:
        return {}
    near = pool.vectors[looked] @ pool.vectors[says_so].T >= NEAR
    age = {row: (int(pool.moments[row]), int(pool.numbers[row])) for row in looked}

    @cache
    def heads(row: int) -> frozenset[str]:
        return _heads(texts[row], language)

    found: dict[int, int] = {}
    for old, is_near in zip(looked, near, strict=True):
        rivals = [
            new
            for new, close in zip(says_so, is_near, strict=True)
            if close
            and age[new] > age[old]
            and (old in foreign or new not in foreign)
            and len(heads(new) & heads(old)) >= HEADS
        ]
        if rivals:
            found[old] = max(rivals, key=age.__getitem__)
    return found


def outranked(
    pool: Pool,
    best: Sequence[int],
    texts: Mapping[int, str],
    foreign: Collection[int],
    language: Language = ENGLISH,
) -> Mapping[int, Sequence[int]]:
    """Return for the `foreign` among the best candidates the user's own that are near to them and share a head word."""
    looked = [row for row in best[:LOOKED_AT] if row in texts]
    own = [row for row in looked if row not in foreign]
    others = [row for row in looked if row in foreign]
    if not own or not others:
        return {}
    heads = {row: _heads(texts[row], language) for row in looked}
    near = pool.vectors[others] @ pool.vectors[own].T >= NEAR
    found = {
        row: [mine for mine, close in zip(own, is_near, strict=True) if close and heads[mine] & heads[row]]
        for row, is_near in zip(others, near, strict=True)
    }
    return {row: rivals for row, rivals in found.items() if rivals}


def _heads(text: str, language: Language) -> frozenset[str]:
    return frozenset(stems(text)) - language.empty - language.asking
