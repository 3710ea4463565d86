"""Whether somebody told something or only asked, by English forms and by question marks of any script."""

from __future__ import annotations

import re

from memstory_reference.text.sentences import sentences

_MARKS = ("?", "\uff1f", "\u061f")
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
    return sentence.endswith(_MARKS) or _ASKS.match(sentence) is not None
