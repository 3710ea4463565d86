"""Sentences and smaller parts of a text, which always join to it again; and whether a sentence tells or only asks."""

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


_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_AUX = r"(?:do|does|did|is|are|am|was|were|can|could|should|will|would|have|has)"
_ME = r"(?:I|we|you|he|she|they|it|my|our|the|any|there)"
_ASKS = re.compile(
    r"(?:(?:and|so|but|please|now|then|also)\b[, ]*)*(?:"
    rf"(?:what|which|who|whose|whom|how)(?:['\u2019]s\b| (?!{_ME}\b)(?:[\w-]+ ){{0,3}}?{_AUX}\b)"
    rf"|(?:when|where|why)(?:['\u2019]s\b| {_AUX}\b)"
    rf"|{_AUX} {_ME}\b"
    r"|(?:tell|remind|show|give) me (?!that\b)|(?:list|recall|say|look up|find|search) (?:me|my|our|all|what|the)\b"
    r"|I(?:['\u2019]d| would)? (?:wonder|was wondering|like to know|want to know|need to know)\b"
    r")",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:hi|hello|hey|yo|good (?:morning|afternoon|evening|day|night)|bye|goodbye|see you|thanks?(?: you)?|cheers|"
    r"please|ok(?:ay)?|great|nice|cool|perfect|sorry|yes|no|you(?:['\u2019]re| are) (?:great|welcome|the best)|so much|"
    r"a lot|very much|there|again|[\s,.!])+",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"(?:the )?user (?:says|said|states|stated|mentions|mentioned|tells me|told me)(?: that\b|:|,)?\s+", re.IGNORECASE
)
_NO_ANSWER = re.compile(
    r"I (?:do not|don['\u2019]t|did not|didn['\u2019]t|could not|couldn['\u2019]t) (?:know|find|remember|recall|have)\b"
    r"|I have no\b|I(?:['\u2019]m| am) not (?:sure|aware)\b|no memor(?:y|ies)\b|memory unavailable\b",
    re.IGNORECASE,
)


def tells_nothing(text: str) -> bool:
    """Say whether every sentence only asks or is a courtesy.

    >>> [tells_nothing(text) for text in ("Hi! Where do I live?", "Thanks.", "I live in Graz. Where is the station?")]
    [True, True, False]
    """
    return all(_asks(one) or _COURTESY.fullmatch(one) for one in sentences(text))


def as_said(text: str) -> str:
    """Return a statement without the words by which a model that saves whole sentences reports it.

    >>> as_said("The user says: I live in Graz."), as_said("The user guide is old.")
    ('I live in Graz.', 'The user guide is old.')
    """
    text = text.strip()
    reported = _REPORTED.match(text)
    return text[reported.end() :] if reported else text


def without_courtesies(text: str) -> str:
    """Return a text without the sentences that are courtesies; all of it if it is nothing else.

    >>> without_courtesies("Good morning! Where do I live?"), without_courtesies("Thanks!")
    ('Where do I live?', 'Thanks!')
    """
    return " ".join(one for one in sentences(text) if not _COURTESY.fullmatch(one)) or text


def is_no_answer(text: str) -> bool:
    """Say whether an answer begins by saying that there is none.

    >>> is_no_answer("I don't know: I have no memory of that."), is_no_answer("You told me: I don't know Bo.")
    (True, False)
    """
    return _NO_ANSWER.match(text.strip()) is not None


def _asks(sentence: str) -> bool:
    return sentence.endswith(_QUESTION_MARKS) or _ASKS.match(sentence) is not None
