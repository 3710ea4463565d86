"""What people say to have something forgotten, or to hear what is remembered; which records and sentences are meant.

English, by form: "forget my name, please", "can you forget that I live in Oslo?", "delete my job from your memory".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memstory_reference.systems.layers.records.record import DENIED, Arc, Fact, MemoryRecord, text_of
from memstory_reference.text.english import lexicon
from memstory_reference.text.english.utterances import Context, read_message
from memstory_reference.text.english.wording import split_sentences
from memstory_reference.text.keywords import STOP_WORDS
from memstory_reference.text.sentences import sentences
from memstory_reference.text.stems import roots
from memstory_reference.text.token_sets import token_set

FORGOTTEN = "[forgotten]"
_POLITE = rf"(?:(?:{lexicon.phrase_pattern('openings')}|{lexicon.phrase_pattern('wanting')}|then|actually)[, ]+)*"
_FORGET = re.compile(
    rf"{_POLITE}(?:forget\s+(?P<a>.+)"
    r"|(?:delete|erase|remove|wipe)\s+(?P<b>.+?)(?P<memory>\s+from (?:your |the )?memory)?"
    r"(?:,? (?:please|thanks))?[\s.!?]*)",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"\A(?:(?:about|that|the fact that|what (?:you know|i (?:told|said to) you) (?:about|of)|"
    r"the rule (?:about|that|to))\s+)+",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:[\s,]+(?:please|thanks|thank you|again|for me|now))?[\s.!?]*$", re.IGNORECASE)
_EVERYTHING = re.compile(
    r"(?:everything|all)(?: (?:that )?(?:you know|you remember|i (?:have )?told you))?(?: (?:about|of) me)?"
    r"(?P<sure>,? for good)?",
    re.IGNORECASE,
)
_NOTHING_NAMED = frozenset(
    {"it", "that", "this", "them", "me", "him", "her", "what i said", "about it", "i asked", "you"}
)
_PROPERTIES: Mapping[str, frozenset[str]] = {
    "name": frozenset({"IS_NAMED"}),
    "address": frozenset({"LIVES_IN"}),
    "home": frozenset({"LIVES_IN"}),
    "town": frozenset({"LIVES_IN"}),
    "city": frozenset({"LIVES_IN"}),
    "job": frozenset({"WORKS_AT", "WORKS_AS"}),
    "work": frozenset({"WORKS_AT", "WORKS_AS"}),
    "employer": frozenset({"WORKS_AT"}),
    "allergy": frozenset({"IS_ALLERGIC_TO"}),
    "allergies": frozenset({"IS_ALLERGIC_TO"}),
    "condition": frozenset({"HAS_CONDITION"}),
    "age": frozenset({"IS_AGED"}),
    "where live": frozenset({"LIVES_IN"}),
    "where work": frozenset({"WORKS_AT"}),
}
"""What people call a property, by its telling words, and the predicates that hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetWish:
    """What is to be forgotten, in the words of the person; `everything` needs to be said twice to be `sure`."""

    what: str
    everything: bool = False
    sure: bool = False


def forget_wish(said: str) -> ForgetWish | None:
    """Return what a turn asks to forget; None if it asks nothing of the kind.

    >>> forget_wish("Forget my name, please."), forget_wish("Don't forget my name!")
    (ForgetWish(what='my name', everything=False, sure=False), None)
    """
    line = " ".join(said.replace("’", "'").split())
    found = _FORGET.fullmatch(line)
    if found is None:
        return None
    told = _TAIL.sub("", found["a"] or found["b"])
    what = _HEAD.sub("", told, count=1).strip()
    is_of_memory = found["a"] or found["memory"] or what != told or _property_name(what) in _PROPERTIES
    if not is_of_memory:
        # Remove the intro from the letter.
        return None
    everything = _EVERYTHING.fullmatch(what)
    if everything is not None:
        return ForgetWish(what=what, everything=True, sure=everything["sure"] is not None)
    return (
        None if not what or what.lower() in _NOTHING_NAMED or what.lower().startswith("to ") else ForgetWish(what=what)
    )


def asks_what_is_known(said: str) -> bool:
    """Say whether a turn asks for all that is remembered.

    >>> asks_what_is_known("What do you know about me?"), asks_what_is_known("What do you know about Oslo?")
    (True, False)
    """
    asked = split_sentences(said)
    return len(asked) == 1 and read_message(asked[0], Context()).lists


def matching_records(what: str, records: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the facts and rules that the words name: by the property, else by all their telling words.

    A wish "about Ann" names the facts whose subject or object she is; a property is that of the user alone.
    """
    words = telling_words(what)
    predicates = _PROPERTIES.get(_property_name(what))
    if predicates is not None and token_set(what) & {"my", "i", "me"}:
        # Where somebody no longer lives is told by a denial.
        found = [
            one
            for one in records
            if isinstance(one.content, Fact) and one.content.predicate.removeprefix(DENIED) in predicates
        ]
        if found:
            return found
    if not words:
        return []
    return [one for one in records if not isinstance(one.content, Arc) and holds_value(text_of(one.content), [words])]


def _property_name(what: str) -> str:
    return " ".join([*(["where"] if "where" in token_set(what) else []), *sorted(telling_words(what))])


def telling_words(text: str) -> frozenset[str]:
    """Return the words of a text that name something."""
    return frozenset(token_set(text) - STOP_WORDS - {"user", "s", "rule", "memory", "fact"})


def values_of(records: Iterable[MemoryRecord]) -> list[frozenset[str]]:
    """Return for each record the words that together would tell it again."""
    texts = (one.content.object if isinstance(one.content, Fact) else text_of(one.content) for one in records)
    return [words for words in map(telling_words, texts) if words]


def holds_value(text: str, values: Sequence[frozenset[str]]) -> bool:
    """Say whether a text still tells one of the values."""
    told = roots(text)
    # Of a value that is signs alone nothing is left, and nothing is in every text.
    return any(bool(wanted) and wanted <= told for wanted in (roots(" ".join(value)) for value in values))


def drop_values(text: str, values: Sequence[frozenset[str]]) -> str:
    """Return a text without the sentences that tell one of the values."""
    if not holds_value(text, values):
        return text
    # A value may be told over two sentences: then none of the text is left.
    kept = " ".join(one for one in sentences(text) if not holds_value(one, values))
    return "" if holds_value(kept, values) else kept
