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
_PLAIN = re.compile(r"[^\W_]+")
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
        plain = index_text(word)
        if not plain or plain in STOP_WORDS:
            continue
        found.setdefault(plain, Keyword(word.lower(), specific=bool(_SPECIFIC.search(word))))
        if len(found) == MAX_KEYWORDS:
            break
    return tuple(found.values())


def plain_words(text: str) -> list[str]:
    """Return the words in their order, lower case and without accents; each ideograph is one.

    >>> plain_words("Café, at 5 o'clock!"), plain_words("我用Python")
    (['cafe', 'at', '5', 'o', 'clock'], ['我', '用', 'python'])
    """
    if text.isascii():  # nearly all, in a third of the time
        return _PLAIN.findall(text.lower())
    spaced = _IDEOGRAPH.sub(r" \1 ", unicodedata.normalize("NFKC", text))
    decomposed = unicodedata.normalize("NFKD", spaced.lower())
    return _PLAIN.findall("".join(one for one in decomposed if not unicodedata.combining(one)))


def index_text(text: str) -> str:
    """Return `text` as full-text search holds it: its plain words, which the tokenizer `ascii` leaves as they are.

    >>> index_text("Café: 我用Python")
    'cafe 我 用 python'
    """
    return " ".join(plain_words(text))


def spaced_words(text: str) -> str:
    """Return the plain words between blanks, so that one text is in another only at the limits of words.

    >>> spaced_words("a cat") in spaced_words("A cat!"), spaced_words("a cat") in spaced_words("a cattle")
    (True, False)
    """
    return f" {index_text(text)} "


def fts_query(keywords: Iterable[Keyword]) -> str:
    """Return an FTS5 expression that matches any keyword; each is a phrase of plain words, so nothing in it is syntax.

    >>> fts_query(extract_keywords('c++ AND "all-MiniLM-L6-v2"'))
    '"c" OR "all minilm l6 v2"'
    """
    return " OR ".join(f'"{index_text(keyword.text)}"' for keyword in keywords)


def matching_keywords(keywords: Sequence[Keyword], text: str) -> tuple[Keyword, ...]:
    """Return the keywords that occur in `text` as whole words."""
    words = spaced_words(text)
    return tuple(keyword for keyword in keywords if spaced_words(keyword.text) in words)
