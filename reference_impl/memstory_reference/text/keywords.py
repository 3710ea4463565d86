"""Keywords of a text, and full-text queries that no user text can bend (OF-4, OF-5, OF-8, SEC-3)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_KEYWORDS = 32
_STOP_WORDS = """
a about above after again all also am an and any are as at be because been before being below between both but
by can could did do does doing down during each few for from further had has have having he her here hers him
his how i if in into is it its just me more most my no nor not now of off on once only or other our out over
own same she should so some such than that the their them then there these they this those through to too
under until up upon us very was we were what when where which while who whom why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# One word, with the joints that technical names have inside: glm4:9b, all-MiniLM-L6-v2, gpt-4.1, snake_case.
_WORD = re.compile(r"\w+(?:[-:.+/]\w+)*", re.UNICODE)
_IDEOGRAPH = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af])")
_SPECIFIC = re.compile(r"[\d_:-]|(?<=\w)[A-Z]")


@dataclass(frozen=True, slots=True)
class Keyword:
    """A lower-case word; `specific` words (a digit, `-`, `_`, `:`, an inner capital) name one thing alone."""

    text: str
    specific: bool


def extract_keywords(text: str) -> tuple[Keyword, ...]:
    """Return the distinct words that carry meaning, in order, at most 32.

    >>> [keyword.text for keyword in extract_keywords("Tune the glm4:9b model")]
    ['tune', 'glm4:9b', 'model']
    """
    found: dict[str, Keyword] = {}
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        lowered = word.lower()
        if lowered in STOP_WORDS or not any(character.isalnum() for character in lowered):
            continue
        found.setdefault(lowered, Keyword(lowered, specific=bool(_SPECIFIC.search(word))))
        if len(found) == MAX_KEYWORDS:
            break
    return tuple(found.values())


def segmented(text: str) -> str:
    """Return `text` as it is indexed: ideographs are separated, so that a phrase finds them inside a longer run.

    >>> segmented("我用Python")
    '我 用 Python'
    """
    if text.isascii():
        return " ".join(text.split())
    spaced = _IDEOGRAPH.sub(r" \1 ", unicodedata.normalize("NFKC", text))
    return " ".join(spaced.split())


def fts_query(keywords: Iterable[Keyword]) -> str:
    """Return an FTS5 expression that matches any keyword; each is a quoted phrase, so nothing in it is syntax.

    >>> fts_query(extract_keywords('c++ AND "all-MiniLM-L6-v2"'))
    '"c" OR "all-minilm-l6-v2"'
    """
    phrases = (segmented(keyword.text).replace('"', '""') for keyword in keywords)
    return " OR ".join(f'"{phrase}"' for phrase in phrases)


def matched(keywords: Sequence[Keyword], text: str) -> tuple[Keyword, ...]:
    """Return the keywords that occur in `text` as whole words."""
    words = f" {' '.join(_plain_words(text))} "
    return tuple(keyword for keyword in keywords if f" {' '.join(_plain_words(keyword.text))} " in words)


def _plain_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", segmented(text).lower())
