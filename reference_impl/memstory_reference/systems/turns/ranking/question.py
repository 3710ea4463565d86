"""What a question says beside its words: whom it names, which dates, and whether it is about the present."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from memstory_reference.systems.turns.ranking.languages import ENGLISH, Language
from memstory_reference.systems.turns.ranking.spans import Span, spans_in
from memstory_reference.text.words import plain_words, stem

LONGEST_COMPARISON = 200
"""Characters of a question that is taken apart; it is matched by patterns that take long for long texts."""

_GENITIVE = re.compile(r"['\u2019]s\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, read. `bare` is what is left of it without names and words that only ask; its `stems` are distinct.

    `named` are the known speakers that it names; `asks_assistant` is for what "you" said.
    """

    text: str
    bare: str
    stems: tuple[str, ...]
    named: tuple[str, ...]
    spans: tuple[Span, ...]
    is_about_now: bool
    asks_assistant: bool


def read_question(text: str, speakers: Collection[str], asked_at: datetime, language: Language = ENGLISH) -> Question:
    """Return what `text` asks; names of known speakers and words that only ask are not words to look for.

    >>> asked = read_question("Where does Ana live now?", {"Ana", "Ben"}, datetime(2024, 1, 1))
    >>> asked.stems, asked.named, asked.is_about_now
    (('live', 'now'), ('Ana',), True)
    """
    first_names: dict[str, list[str]] = {}
    for speaker in sorted(speakers):
        for word in plain_words(speaker)[:1]:
            first_names.setdefault(word, []).append(speaker)
    words = plain_words(_GENITIVE.sub("", text))
    named = [speaker for word in words for speaker in first_names.get(word, ())]
    telling = [word for word in words if word not in first_names and word not in language.asking] or words
    wanted = [word for word in telling if word not in language.empty] or telling
    return Question(
        text=text,
        bare=" ".join(telling) or text,
        stems=tuple(dict.fromkeys(map(stem, wanted))),
        named=tuple(dict.fromkeys(named)),
        spans=spans_in(text, asked_at, language),
        is_about_now=bool(language.now.search(text)),
        asks_assistant=bool(language.answered.search(text)),
    )


def compared_events(text: str, language: Language = ENGLISH) -> tuple[str, ...]:
    """Return the two events of a question that asks which of them came first; empty of any other question.

    >>> compared_events("Did Ana move before or after the flood?"), compared_events("When did Ana move?")
    (('Did Ana move', 'the flood'), ())
    """
    plain = " ".join(text.split()).rstrip("?. ")
    if len(plain) > LONGEST_COMPARISON:
        return ()
    found = (pattern.fullmatch(plain) for pattern in language.compared)
    return next((match.groups() for match in found if match), ())
