"""Texts taken apart: sentences, words, stems, contractions. The case and the script of what was said stay."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from memstory_reference.adapters.offline_chat.lexicon import IRREGULAR_PASTS, STOP_WORDS

_CONTRACTIONS = (
    (r"\bu\b", "you"),
    (r"\bur\b", "your"),
    (r"\bim\b", "I am"),
    (r"\bive\b", "I have"),
    (r"\b(I)['’]m\b", r"\1 am"),
    (r"\b(I|you|we|they)['’]ve\b", r"\1 have"),
    (r"\b(I|you|we|they|he|she|it|that)['’]ll\b", r"\1 will"),
    (r"\b(I|you|we|they|he|she)['’]d\b", r"\1 would"),
    (r"\b(you|we|they)['’]re\b", r"\1 are"),
    (r"\b(who|what|where|when|how|which|it|that|there|he|she|here)['’]s\b", r"\1 is"),
    (r"\b(what|where|who|when)s\b(?= (?:my|our|the)\b)", r"\1 is"),
    (r"\blet['’]s\b", "let us"),
    (r"\bcan(?:['’]t|not)\b", "can not"),
    (r"\bwon['’]t\b", "will not"),
    (r"\bshan['’]t\b", "shall not"),
    (r"\b(do|does|did|is|are|was|were|have|has|had|should|would|could|must)n['’]?t\b", r"\1 not"),
    # `my name's Ana` holds a verb, `my sister's name` an owner: a value is no lower-case noun, but for favourites.
    (
        (
            r"^((?:my|our|the) (?:name|(?:favou?rite|preferred) [\w -]+?|[\w -]+?(?=['’]s (?-i:[^a-z]|an? |the |at |"
            r"on |"
            r"in ))))['’]s "
            r"(?!.*\b(?:is|are|was|were|has|have|lives?|works?|likes?)\b)"
        ),
        r"\1 is ",
    ),
)
_EXPANSIONS = tuple((re.compile(pattern, re.IGNORECASE), expanded) for pattern, expanded in _CONTRACTIONS)

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+|(?<=[。！？])|\s*\n+\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:Dr|Mr|Mrs|Ms|Prof|St|No|vs|etc|approx|e\.g|i\.e|[A-Z])\.)$")
_ORDINAL = re.compile(r"\b\d+\.$")
_MONTH = re.compile(r"^(?:[a-z]|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w*\b)")
_WORD = re.compile(r"[\w+#]+(?:[-.:/@][\w+#]+)*", re.UNICODE)
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s)")
_LONGEST_TEXT, _LONGEST_SENTENCE = 8_000, 800
"""Characters that are read of a message, and as one sentence: no pattern shall run for long."""


def shortened(text: str) -> str:
    """Return as much of `text` as the rules read, in one line."""
    return " ".join(text[:_LONGEST_TEXT].split())


def expanded(text: str) -> str:
    """Return `text` with its contractions written out.

    >>> expanded("My name's Ana, I'm sure; I don't drink")
    'My name is Ana, I am sure; I do not drink'
    """
    for pattern, long_form in _EXPANSIONS:
        text = pattern.sub(long_form, text)
    return text


def sentences(text: str) -> list[str]:
    """Cut `text` into sentences; abbreviations and ordinals do not end one.

    >>> sentences("I live in St. Gallen. Who am I?")
    ['I live in St. Gallen.', 'Who am I?']
    """
    found: list[str] = []
    pieces = (part for piece in _SENTENCE_END.split(text) for part in textwrap.wrap(piece, _LONGEST_SENTENCE))
    for part in pieces:
        if found and (_ABBREVIATION.search(found[-1]) or (_ORDINAL.search(found[-1]) and _MONTH.match(part))):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found


def words(text: str) -> list[str]:
    """Return the lower-case words, without the `'s` of owners.

    >>> words("My sister's C++ is v2.1!")
    ['my', 'sister', 'c++', 'is', 'v2.1']
    """
    return [word.casefold() for word in _WORD.findall(_POSSESSIVE.sub("", text))]


def content_words(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in order, each once.

    >>> content_words("What do you remember about my sisters?")
    ['sister']
    """
    return list(dict.fromkeys(stem(word) for word in words(expanded(text)) if word not in STOP_WORDS))


_SHORTEST_PLURAL = 4
_SHORTEST_STEM = 4


def singular(word: str) -> str:
    """Return a regular plural without its ending.

    >>> [singular(word) for word in ("tabs", "allergies", "boxes", "class", "bus", "status")]
    ['tab', 'allergy', 'box', 'class', 'bus', 'status']
    """
    if len(word) < _SHORTEST_PLURAL or not word.endswith("s") or word.endswith(("ss", "us", "ous")):
        return word
    if word.endswith("is") and not word.endswith(("jis", "kis", "wis", "pis")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def base(word: str) -> str:
    """Return a verb without `-ing`, where enough of it stays.

    >>> base("deploying"), base("committing"), base("string")
    ('deploy', 'commit', 'string')
    """
    if not word.endswith("ing") or word.endswith("thing") or len(word) < _SHORTEST_STEM + len("ing"):
        return word
    word = word[: -len("ing")]
    return word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word


def stem(word: str) -> str:
    """Return what regular forms of a word share.

    >>> stem("decided"), stem("deploying"), stem("prefers"), stem("planned"), stem("studied"), stem("grew")
    ('decid', 'deploy', 'prefer', 'plan', 'study', 'grow')
    """
    word = base(singular(word))
    word = IRREGULAR_PASTS.get(word, word)
    if word.endswith("ied") and len(word) > _SHORTEST_STEM:
        return f"{word[:-3]}y"
    if word.endswith("ed") and len(word) > _SHORTEST_STEM + 1:
        word = word[: -len("ed")]
        return word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST_STEM else word


_SHARED_PREFIX = 6


def alike(first: str, second: str) -> bool:
    """Say whether two stems are forms of one word: equal, or equal in their first six letters.

    >>> alike("australian", "australia"), alike("cat", "category")
    (True, False)
    """
    if first == second:
        return True
    shorter = min(len(first), len(second))
    return shorter >= _SHARED_PREFIX and first[:_SHARED_PREFIX] == second[:_SHARED_PREFIX]


def shared(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return those of `wanted` that are alike to a word of `there`."""
    return [word for word in wanted if any(alike(word, other) for other in there)]
