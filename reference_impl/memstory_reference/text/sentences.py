"""Where a text may be cut: at sentences, clauses, words, letters. Units always join to the text again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

_END = re.compile(r"[.!?]\s+")
_WORD_BEFORE = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*\Z")
_LONGEST_ABBREVIATION = 12
_ABBREVIATIONS = """
dr mr mrs ms mx prof st sr jr rev hon gen col capt lt sgt vs e.g i.e cf al approx no nr vol fig pp ed inc ltd co corp
dept est jan feb mar apr jun jul aug sep sept oct nov dec
"""
_SHORT_FORMS = frozenset(_ABBREVIATIONS.split())

# Commas, colons and full stops of Latin, Chinese, Arabic and Devanagari. An ideographic full stop ends no sentence of
# the rule "mark, space, capital", so it counts as a clause.
_MARKS = r",;:\u2026\uff0c\uff1b\uff1a\u3001\u3002\uff01\uff1f\u061b\u061f\u060c\u0964\u06d4\n"
_CLAUSE = re.compile(rf"[^{_MARKS}]*[{_MARKS}]+\s*|[^{_MARKS}]+")
_WORD = re.compile(r"\S+\s*|\s+")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_LONGEST_LETTER = 8


def sentence_units(text: str) -> list[str]:
    """Return the sentences, each with the whitespace behind it: cut at `.`, `!` or `?`, space, capital (P-04).

    >>> sentence_units("He said hi! ok. 3.5 is it? Yes.")
    ['He said hi! ok. 3.5 is it? ', 'Yes.']
    >>> sentence_units("Ask Dr. Smith. He knows.")
    ['Ask Dr. Smith. ', 'He knows.']
    """
    cuts = [0]
    for end in _END.finditer(text):
        follows = text[end.end() : end.end() + 1]
        if follows.isupper() and not _abbreviates(text, end.start()):
            cuts.append(end.end())
    cuts.append(len(text))
    return [text[start:stop] for start, stop in pairwise(cuts) if stop > start]


def sentences(text: str) -> list[str]:
    r"""Return the sentences, stripped, lines being sentences too.

    >>> sentences("One. Two.\n- three")
    ['One.', 'Two.', '- three']
    """
    found = (unit.strip() for line in text.splitlines() for unit in sentence_units(line))
    return [sentence for sentence in found if sentence]


def clause_units(text: str) -> list[str]:
    """Return the clauses, each with its mark and the whitespace behind it."""
    return _CLAUSE.findall(text)


def word_units(text: str) -> list[str]:
    """Return the words, each with the whitespace behind it."""
    return _WORD.findall(text)


def line_units(text: str) -> list[str]:
    """Return the lines, each with its end."""
    return text.splitlines(keepends=True)


def letter_units(text: str) -> list[str]:
    """Return the letters, each with the marks that belong to it, as long as these are few."""
    return list(_letters(text))


def _letters(text: str) -> Iterator[str]:
    letter = ""
    for sign in text:
        belongs = sign in _JOINERS or letter.endswith("\u200d") or unicodedata.category(sign).startswith("M")
        if letter and not (belongs and len(letter) < _LONGEST_LETTER):
            yield letter
            letter = ""
        letter += sign
    if letter:
        yield letter


def _abbreviates(text: str, at: int) -> bool:
    """Say whether the full stop at `at` belongs to a title or another short form, not to the end of a sentence."""
    if text[at] != ".":
        return False
    word = _WORD_BEFORE.search(text[max(0, at - _LONGEST_ABBREVIATION) : at])
    if word is None:
        return False
    is_initial = len(word[0]) == 1 and word[0].isupper() and word[0] != "I"
    return is_initial or word[0].lower() in _SHORT_FORMS
