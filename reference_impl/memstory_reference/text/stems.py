"""Words as an index holds them: without case and accents, cut to their stems; and what a text is about by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from memstory_reference.text.folding import fold
from memstory_reference.text.keywords import plain_words

_WORD = re.compile(r"[^\W_]+")
_POINTING = frozenset(["a", "an", "the", "my", "our", "your", "his", "her", "its", "their", "this", "that"])
_SHORT_STEM = 4
_LONGEST = 64
"""Characters of a word that count: a run of a megabyte is one word, and no index wants it."""


def stems(text: str) -> list[str]:
    """Return the stem of each word, in their order.

    >>> stems("She moved the boxes")
    ['she', 'move', 'the', 'box']
    """
    return [stem(word) for word in plain_words(text)]


@cache
def _porter() -> Callable[[str], str]:
    # Every help is shown without this package: it is needed where words are cut.
    import snowballstemmer  # noqa: PLC0415

    stem_word: Callable[[str], str] = snowballstemmer.stemmer("porter").stemWord
    return stem_word


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a plain word; what is not English passes nearly unchanged."""
    return _porter()(word[:_LONGEST])


def is_about(text: str, things: Iterable[str]) -> bool:
    """Return whether `text` has all that names one of `things`: the words of a phrase, or one identifier.

    >>> is_about("My sister Lena sold the boats.", ["the boat of my sister Lena"]), is_about("A hose.", ["garden hose"])
    (False, False)
    >>> is_about("My sister Lena sold the boats.", ["my sister"]), is_about("Call 555-1234.", ["5551234"])
    (True, True)
    >>> is_about("Ticket 123456 is open.", ["12345"])
    False
    """
    known = roots(text)
    tokens = frozenset(map(squeeze, text.split()))
    return any(_names(thing, known, tokens) for thing in things)


def roots(text: str) -> frozenset[str]:
    """Return the stems of a text, a noun's and its adjective's alike, without what is left of a possessive.

    >>> sorted(roots("Rita's allergy")), "allerg" in roots("She is allergic.")
    (['allerg', 'rita'], True)
    """
    return frozenset(one.removesuffix("i") if len(one) > _SHORT_STEM else one for one in stems(text)) - {""}


def squeeze(token: str) -> str:
    """Return an identifier without case, accents, separators and quotes.

    >>> squeeze("'AB-12_x'"), squeeze("@François")
    ('ab12x', 'francois')
    """
    return "".join(_WORD.findall(fold(token).casefold()))


def _names(thing: str, known: frozenset[str], tokens: frozenset[str]) -> bool:
    if len(thing.split()) == 1:
        # One word may be written in parts, or be a part of what has a sign in it: it is one token or none.
        return bool(squeeze(thing)) and squeeze(thing) in tokens
    wanted = roots(thing) - _POINTING
    return bool(wanted) and wanted <= known
