"""Sentences read by small lists of words and by how these stand together: who, what is wanted or done, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from memstory_reference.text.folding import fold, letters_for_digits

_SHORT_FORMS: Final = (
    (r"\b(?:can'?t|cannot)\b", "can not"),
    (r"\b(?:won'?t)\b", "will not"),
    (r"\b(do|does|did|is|are|was|were|would|should|could|has|have|had|need)n'?t\b", r"\1 not"),
    (r"\bain'?t\b", "is not"),
    (r"\bwanna\b", "want to"),
    (r"\bgonna\b", "going to"),
    (r"\bi'?m\b", "i am"),
    (r"(?<=\w)'(?:m|re)\b", " are"),
    (r"(?<=\w)'ll\b", " will"),
    (r"(?<=\w)'ve\b", " have"),
    (r"(?<=\w)'d\b", " would"),
    (r"(?<=\w)'s\b", " is"),
    (r"\bself[\s-]+harm", "selfharm"),
    (r"\bany more\b", "anymore"),
)
_STOP: Final = re.compile(r"[.!?;\n]+(?!\w)|\bbut\b|—", re.IGNORECASE)
_LEAST_MISSPELT: Final = 7
_SIMILAR: Final = 0.88


class Words:
    """A list of words, written as a text: `kill*` stands for all that begin so, `my_life` for words in a row."""

    def __init__(self, text: str) -> None:
        self.entries: Final = tuple(text.split())
        parts = (re.escape(one).replace(r"\*", r"\w*").replace("_", r"\s+") for one in self.entries)
        self.pattern: Final = f"(?:{'|'.join(parts)})"
        self._alone = re.compile(rf"\b{self.pattern}(?!\w)")

    def __or__(self, other: Words) -> Words:
        return Words(" ".join((*self.entries, *other.entries)))

    def occurs_in(self, text: str) -> bool:
        """Say whether one of the words is in a text."""
        return self._alone.search(text) is not None

    def count(self, text: str) -> int:
        """Return how many times words of the list are in a text."""
        return len(self._alone.findall(text))


class Frame:
    """Lists of words that follow one another, each at most `gap` words behind the one before, in one clause."""

    def __init__(self, *lists: Words | str, gap: int = 4, unless: Words | None = None, end: bool = False) -> None:
        self.lists: Final = tuple(Words(one) if isinstance(one, str) else one for one in lists)
        between = rf"(?:\s+\w+){{0,{gap}}}?\s+"
        tail = r"(?=\s*(?:\||$|anymore\b|any\s+longer|no\s+more|like\s+this|and\b|or\b))" if end else ""
        self._pattern = re.compile(rf"\b{between.join(one.pattern for one in self.lists)}(?!\w){tail}")
        self._unless = unless

    def find(self, clause: str) -> re.Match[str] | None:
        """Return where the frame is in a clause, None without it or beside words that turn its meaning."""
        if self._unless is not None and self._unless.occurs_in(clause):
            return None
        return self._pattern.search(clause)


@lru_cache(maxsize=64)
def clauses(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the clauses of a text: words apart by a space, short forms written out, misspelt `known` words right.

    >>> clauses("I cant go on. But I'm sucidal", ("suicidal",))
    ('i can not go on', 'i am suicidal')
    """
    plain = " ".join(fold(text.replace("\u2019", "'")).lower().split(" "))
    for pattern, full in _SHORT_FORMS:
        plain = re.sub(pattern, full, plain)
    apart = (_clean(clause, known) for clause in _STOP.split(plain))
    return tuple(one for one in apart if one)


def readings(text: str, known: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the clauses of a text as it is written, and as it is meant where digits stand for letters."""
    words, meant = tuple(known), letters_for_digits(text)
    return [clauses(text, words)] if meant == text else [clauses(text, words), clauses(meant, words)]


def _clean(clause: str, known: tuple[str, ...]) -> str:
    return " ".join(_spelt(word, known) for word in re.findall(r"\w+", clause))


@lru_cache(maxsize=20_000)
def _spelt(word: str, known: tuple[str, ...]) -> str:
    """Return a known word for one that only doubles a letter or leaves one out, or that is nearly as long and alike."""
    if word in known:
        return word
    if (
        right := next((one for one in known if _squeeze(one) == _squeeze(word) and one != _squeeze(one)), None)
    ) is not None:
        return right
    close = get_close_matches(word, known, 1, _SIMILAR) if len(word) >= _LEAST_MISSPELT else []
    return close[0] if close and len(close[0]) >= _LEAST_MISSPELT else word


def _squeeze(word: str) -> str:
    return re.sub(r"(\w)\1+", r"\1", word)
