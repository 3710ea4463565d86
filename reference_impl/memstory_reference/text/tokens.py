"""How many tokens a text is, without a model's tokenizer: words, marks and ideographs (PF-3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
# Thai, Lao, Tibetan, Burmese, Khmer: scripts that write no spaces.
_UNSPACED = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
# A longer run than 16 letters is not a word: a budget must not be passed by a text without spaces (SEC-14).
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|[{_UNSPACED}]{{1,3}}|[^\W{_IDEOGRAPHS}{_UNSPACED}]{{1,16}}|[^\w\s]")


def count_tokens(text: str) -> int:
    """Return the number of words, punctuation marks and ideographs.

    >>> count_tokens("I prefer tabs."), count_tokens("我用Python"), count_tokens("a" * 160), count_tokens(" ")
    (4, 3, 10, 0)
    """
    return sum(1 for _ in _TOKEN.finditer(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounter:
    """A way to count tokens, with a name that a result can tell; a language model's own tokenizer fits too."""

    name: str
    count: Callable[[str], int]


WORDS = TokenCounter(name="words and marks", count=count_tokens)
