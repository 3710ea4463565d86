"""Words as an index holds them: without case and accents, cut to their stems; ideographs stand alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

import snowballstemmer

from memstory_reference.text.keywords import segmented

_WORD = re.compile(r"[^\W_]+")
_LONGEST = 64
"""Characters of a word that count: a run of a megabyte is one word, and no index wants it."""

_stem: Callable[[str], str] = snowballstemmer.stemmer("porter").stemWord


def plain_words(text: str) -> list[str]:
    """Return the words in their order, lower case and without accents.

    >>> plain_words("Café, at 5 o'clock!"), plain_words("我用Python")
    (['cafe', 'at', '5', 'o', 'clock'], ['我', '用', 'python'])
    """
    decomposed = unicodedata.normalize("NFKD", segmented(text).lower())
    return _WORD.findall("".join(one for one in decomposed if not unicodedata.combining(one)))


def stems(text: str) -> list[str]:
    """Return the stem of each word, in their order.

    >>> stems("She moved the boxes")
    ['she', 'move', 'the', 'box']
    """
    return [stem(word) for word in plain_words(text)]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a plain word; what is not English passes nearly unchanged."""
    return _stem(word[:_LONGEST])
