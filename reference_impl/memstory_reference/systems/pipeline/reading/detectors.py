"""What a text holds, by rules that look at words alone: names, numbers, preferences, technical terms, the present.

The specification asks for these signals and leaves open how to find them (PF-19). Each is a plain function from text to
yes or no, and `Detectors` takes any other. The rules here know English; in scripts without capitals no name is found,
and such texts are kept for their novelty.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memstory_reference.systems.pipeline.chunk import ChunkType
from memstory_reference.systems.pipeline.importance import Signals
from memstory_reference.systems.pipeline.reading.preference_statements import PREFERENCE, states_preference
from memstory_reference.systems.pipeline.reading.stated_facts import FACT_VERBS, holds_facts
from memstory_reference.text.chunks import prose
from memstory_reference.text.words import STOP_WORDS

Detector = Callable[[str], bool]

_PRESENT = re.compile(
    r"\b(?:right\s+now|for\s+now|just\s+now|at\s+the\s+moment|at\s+present|currently|(?:this|the\s+current)\s+session)\b"
    r"|\b(?:am|are|is|'m|'re)\s+now\b|^now\b(?!\s+(?:and\s+)?(?:then|again)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_CALENDAR = """
january february april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
"""
_NUMERALS = """
yesterday tomorrow two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty seventy
eighty ninety hundred thousand million billion dozen
"""
_NUMBER = re.compile(rf"\d|\b(?:{'|'.join((_CALENDAR + _NUMERALS).split())})\b", re.IGNORECASE)

_WORD = re.compile(r"[^\W\d_][\w'\u2019&+#-]*")
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_AT_START = re.compile(r"(?:\A|[.!?:]|\n)[\s\-*\u2022#>\d.)(\"'\u201c]*\Z")
_LOOK_BACK = 24
_OPENERS = """
i'm i've i'd i'll it's that's let's don't ok okay yes yeah hello hi hey thanks thank please sorry sure well so and
but maybe today now then nothing everything something someone everyone anyone nobody let may march
favorite favourite prefer hate always
"""
_NOT_NAMES = STOP_WORDS | frozenset((_OPENERS + _CALENDAR).split())

_TECHNICAL_FORM = re.compile(r"\w[._/:]\w|_\w|\w\(|::|\w\d\w|^--?\w|\$\w")
_TOKEN = re.compile(r"[A-Za-z][\w./:()$-]*")
_RARE_AVERAGE = 0.35
_SHORT_WORD, _LONG_WORD = 4, 12
_EVERYDAY_WORDS = """
yesterday tomorrow morning evening afternoon something everything anything nothing everyone someone together another
different important beautiful wonderful interesting actually probably definitely usually sometimes remember
understand favourite favorite because children birthday breakfast restaurant question questions holiday vacation
weekend thought talked talking working meeting meetings remembered happened happening wanted
"""
_EVERYDAY = STOP_WORDS | frozenset(_EVERYDAY_WORDS.split())


def has_entity(text: str) -> bool:
    """Say whether a person, place, organisation or product seems to be named, by its capital.

    A first word counts only where its form or what follows tells a name from the mere start of a sentence.

    >>> has_entity("we met Alice"), has_entity("Berlin is cold"), has_entity("The trip was long")
    (True, True, False)
    """
    if not any(sign.islower() for sign in text):
        return False  # all capitals tell nothing
    words = list(_WORD.finditer(text))
    for number, word in enumerate(words):
        if _INNER_CAPITAL.search(word[0]):
            return True
        if not _is_capitalised(word[0]):
            continue
        if not _AT_START.search(text[max(0, word.start() - _LOOK_BACK) : word.start()]):
            return True
        follower = words[number + 1][0] if number + 1 < len(words) else ""
        if word[0].endswith(("'s", "\u2019s")) or _is_capitalised(follower) or follower in FACT_VERBS:
            return True
    return False


def has_number(text: str) -> bool:
    """Say whether a number or a date is in the text, in digits of any script or spelled out."""
    return bool(_NUMBER.search(text))


def has_preference(text: str) -> bool:
    """Say whether the text has one of the four signals of a preference.

    >>> has_preference("Oh, MY FAVOURITE colour!"), has_preference("AI prefers data")
    (True, False)
    """
    return bool(PREFERENCE.search(text))


def is_technical(text: str) -> bool:
    """Say whether the words of the text are rare on average: long, or of a form that only technical terms have.

    >>> is_technical("the kubernetes ingress misbehaves"), is_technical("we talked about the trip")
    (True, False)
    """
    rarities = [_rarity(token) for token in _TOKEN.findall(text)]
    return bool(rarities) and sum(rarities) / len(rarities) > _RARE_AVERAGE


def is_about_now(text: str) -> bool:
    """Say whether the text is explicitly about the present or this session."""
    return bool(_PRESENT.search(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectors:
    """The detectors in use. All but `technical` are shown the text without its fenced code."""

    entity: Detector = has_entity
    number: Detector = has_number
    preference: Detector = has_preference
    statement: Detector = states_preference
    technical: Detector = is_technical
    present: Detector = is_about_now
    fact: Detector = holds_facts

    def signals(self, text: str, *, is_from_user: bool = True) -> Signals:
        """Return the signals of salience; another voice than the user's states no preference of the user."""
        said = prose(text)
        return Signals(
            has_entity=self.entity(said),
            has_number=self.number(said),
            has_preference=is_from_user and self.preference(said),
            is_technical=self.technical(text),
        )


def memory_type_of(text: str, detectors: Detectors, *, is_from_user: bool = True) -> ChunkType:
    """Return the type of a chunk that came without a hint (P-11); only a statement of a preference is procedural.

    >>> [memory_type_of(text, Detectors()).value for text in ("I prefer tabs right now", "We talked about the trip")]
    ['procedural', 'episodic']
    """
    said = prose(text)
    if is_from_user and detectors.statement(said):
        return ChunkType.PROCEDURAL
    if detectors.present(said):
        return ChunkType.WORKING
    if detectors.fact(said):
        return ChunkType.SEMANTIC
    return ChunkType.EPISODIC


def _is_capitalised(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and word.lower() not in _NOT_NAMES


def _rarity(token: str) -> float:
    """Return 0 for an everyday word and up to 1 for a rare one: length stands in for a table of frequencies."""
    if token.lower() in _EVERYDAY:
        return 0.0
    if _TECHNICAL_FORM.search(token) or _INNER_CAPITAL.search(token):
        return 1.0
    return min(1.0, max(0.0, (len(token) - _SHORT_WORD) / (_LONG_WORD - _SHORT_WORD)))
