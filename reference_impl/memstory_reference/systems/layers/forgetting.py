"""What a person asks to forget, in whose words: which records it names, and what of a text still tells it.

English, by form: "forget my name, please", "can you forget that I live in Oslo?", "delete my job from your memory".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memstory_reference.systems.layers.records import (
    DENIED,
    IS_NAMED,
    Arc,
    Fact,
    MemoryRecord,
    SessionMemoryBuffer,
    SpokenTurn,
    text_of,
)
from memstory_reference.text.english.statements import what_to_forget
from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import STOP_WORDS, roots, token_set

FORGOTTEN = "[forgotten]"
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
    what = _HEAD.sub("", _TAIL.sub("", what_to_forget(line)), count=1).strip()
    everything = _EVERYTHING.fullmatch(what)
    if everything is not None:
        return ForgetWish(what=what, everything=True, sure=everything["sure"] is not None)
    return (
        None if not what or what.lower() in _NOTHING_NAMED or what.lower().startswith("to ") else ForgetWish(what=what)
    )


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


SHORT_ID = 8
_OPENING = "The user said:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingReport:
    """What was forgotten: records for good, and how many summaries and turns were cut."""

    records: Sequence[MemoryRecord] = ()
    summaries: int = 0
    turns: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found."""
        return not (self.records or self.summaries or self.turns)


def with_replaced(records: Sequence[MemoryRecord], every: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the records and all that they have replaced, which would be the answer again."""
    found = {one.id: one for one in records}
    while more := {one.id: one for one in every if one.superseded_by in found and one.id not in found}:
        found |= more
    return list(found.values())


def with_namesakes(records: Sequence[MemoryRecord], every: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the records, and where a name is forgotten all facts and rules that tell it."""
    names = values_of(one for one in records if isinstance(one.content, Fact) and one.content.predicate == IS_NAMED)
    told = (one for one in every if not isinstance(one.content, Arc) and holds_value(text_of(one.content), names))
    return list({one.id: one for one in (*records, *told)}.values())


_ONE: Final = ("memory", "summary of a session", "turn of an open session")
_MANY: Final = ("memories", "summaries of sessions", "turns of open sessions")


def answer_to_wish(wish: ForgetWish, done: ForgettingReport, nearest: Sequence[MemoryRecord]) -> str:
    """Return what the person hears: what was forgotten, or what may have been meant."""
    if not done.is_empty:
        counts = (len(done.records), done.summaries, done.turns)
        words = zip(counts, _ONE, _MANY, strict=True)
        parts = [f"{count} {one if count == 1 else many}" for count, one, many in words if count]
        quoted = "; ".join(f'"{_label(one)}"' for one in done.records[:5])
        return f"Forgotten: {quoted or wish.what}. Removed or shortened: {', '.join(parts)}."
    if not nearest:
        return f'I found nothing to forget under "{wish.what}".'
    lines = [f'- "{_label(one)}" (id {one.id[:SHORT_ID]})' for one in nearest]
    return "\n".join(
        [f'I found nothing to forget under "{wish.what}". Did you mean one of these? Say "forget" and its id.', *lines]
    )


def _label(record: MemoryRecord) -> str:
    content = record.content
    return content.summary if isinstance(content, Arc) else content.evidence_quote or text_of(content)


def cut_buffer(buffer: SessionMemoryBuffer, values: Sequence[frozenset[str]]) -> SessionMemoryBuffer:
    """Return an open session without what tells one of the values."""
    turns = tuple(_cut_turn(turn, values) for turn in buffer.turns)
    held = tuple(one for one in buffer.held if not holds_value(text_of(one.content), values))
    return replace(buffer, turns=turns, held=held)


def cut_arc(arc: Arc, values: Sequence[frozenset[str]]) -> Arc | None:
    """Return a summary without what tells one of the values; None if nothing is left of it."""
    summary = drop_values(arc.summary.removeprefix(_OPENING), values).strip()
    opening = f"{_OPENING} " if arc.summary.startswith(_OPENING) else ""
    topics = tuple(topic for topic in arc.topics if not holds_value(topic, values))
    return replace(arc, summary=opening + summary, topics=topics) if summary else None


def _cut_turn(turn: SpokenTurn, values: Sequence[frozenset[str]]) -> SpokenTurn:
    # Where the model was down there is no answer, and none that is forgotten.
    user, assistant = ((drop_values(one, values) or FORGOTTEN) if one else "" for one in (turn.user, turn.assistant))
    return replace(turn, user=user, assistant=assistant)
