"""The set of tokens of a text, in every script: what texts are compared and recalled by (seed 003, C-07, C-08, C-17).

Han and kana are taken one by one, for they are written without spaces; Hangul and all else goes by word (CF-9).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set as AbstractSet

_IDEOGRAPHS = (
    r"\u3005\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
# Marks belong to the letter before them: Devanagari, Thai and others would fall apart without.
_TOKEN = re.compile(
    rf"[{_IDEOGRAPHS}]|(?![{_IDEOGRAPHS}])[^\W_]"
    rf"(?:(?![{_IDEOGRAPHS}])(?:[^\W_]|[\u0300-\u036f\u0900-\u0dff\u0e00-\u0eff]|(?<=\w)['](?=\w)))*"
)
_ASCII_TOKEN = re.compile(r"[^\W_]+(?:'(?=\w)[^\W_]*)*")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))


def token_list(text: str) -> list[str]:
    """Return the tokens in order, folded: case, width and composition of letters make no difference.

    >>> token_list("Don’t take 10 mg!")
    ["don't", 'take', '10', 'mg']
    """
    if text.isascii():  # nearly all, in a fifth of the time
        return _ASCII_TOKEN.findall(text.lower())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_APOSTROPHES)
    return _TOKEN.findall(folded)


def token_set(text: str) -> frozenset[str]:
    """Return the distinct tokens.

    >>> sorted(token_set("我用Python")), token_set("café") == token_set("cafe\u0301")
    (['python', '我', '用'], True)
    """
    return frozenset(token_list(text))


def jaccard(left: AbstractSet[str], right: AbstractSet[str]) -> float:
    """Return the share of common tokens among all; 0 for two empty sets, which say nothing alike.

    >>> jaccard({"a", "b"}, {"b", "c"})
    0.3333333333333333
    """
    together = len(left | right)
    return len(left & right) / together if together else 0.0


def token_recall(query: AbstractSet[str], document: AbstractSet[str]) -> float:
    """Return the share of the query's tokens that the document holds.

    >>> round(token_recall({"boss", "work", "stress"}, {"my", "boss", "is", "terrible", "work"}), 6)
    0.666667
    """
    return len(query & document) / len(query) if query else 0.0
