"""Which engrams still hold a fact that is to be forgotten, and which only mention somebody or something in it; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from memstory_reference.systems.topics.engrams import EngramEntry, TopicEntry, is_recall, statements_in
from memstory_reference.text.words import STOP_WORDS, index_text, plain_words, spaced_words

TOPICS = "topics"
"""Metadata of a turn: the topics that it saved or looked up, parted by blanks."""

_WORD = re.compile(r"[^\W_]+")
_LEAST_WORDS, _LEAST_LETTERS = 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenEntry:
    """What was deleted, and the engrams that were kept though they mention it, or a name or a number in it.

    `topics` are those that went because `entry` is the turn in which what they hold was said.
    """

    entry: TopicEntry | EngramEntry
    engrams: Sequence[EngramEntry]
    mentions: Sequence[EngramEntry]
    topics: Sequence[TopicEntry] = ()

    @property
    def gone(self) -> Sequence[TopicEntry | EngramEntry]:
        """All that was deleted, each once."""
        return [*{one.id: one for one in (self.entry, *self.topics, *self.engrams)}.values()]


def find_forgotten(
    entry: TopicEntry | EngramEntry, engrams: Sequence[EngramEntry], topics: Sequence[TopicEntry] = ()
) -> ForgottenEntry:
    """Return what goes with `entry`: turns that had to do with its topic, or say the same, or repeat it in an answer.

    A turn takes along those of `topics` that it named and whose value it says. A name alone does not say whose it is:
    other turns that mention it are listed and kept. Common short words say nothing.
    """
    saved = list[TopicEntry]()
    if isinstance(entry, EngramEntry):
        said = [spaced_words(one) for one in _facts(entry)]
        named = [one for one in topics if _is_about(entry, one)]
        saved = [one for one in named if any(_common_run(one.content, sentence) for sentence in said)]
    parts = [_forgotten(one, [other for other in engrams if other.id != entry.id]) for one in (entry, *saved)]
    gone = {one.id: one for part in parts for one in part.engrams}
    mentions = {one.id: one for part in parts for one in part.mentions if one.id not in gone}
    return ForgottenEntry(entry=entry, engrams=[*gone.values()], mentions=[*mentions.values()], topics=saved)


def _forgotten(entry: TopicEntry | EngramEntry, engrams: Sequence[EngramEntry]) -> ForgottenEntry:
    told = _facts(entry)
    names = {name for fact in told for name in _names(fact)}
    if isinstance(entry, TopicEntry):
        # A model may save more words than were said: what both have is the fact that answers repeat.
        sentences = [said for one in engrams if _is_about(one, entry) for said in statements_in(one.content)]
        told += [run for run in (_common_run(entry.content, said) for said in sentences) if run]
        # Names are names in the user's words, in whatever case they were saved.
        saved = spaced_words(entry.content)
        names |= {name for said in sentences for name in _names(said) if name in saved}
    facts = [(spaced_words(fact), len(plain_words(fact)) >= _LEAST_WORDS) for fact in told]
    later = {one.id for one in entry.since} if isinstance(entry, TopicEntry) else set()
    holding, mentions = list[EngramEntry](), list[EngramEntry]()
    for one in engrams:
        text = spaced_words(one.content)
        is_named = any(name in text for name in names)
        is_same = any(fact in text and (is_long or (is_named and is_recall(one))) for fact, is_long in facts)
        if is_same or is_named or one.id in later or _is_about(one, entry):
            (holding if is_same or _is_about(one, entry) else mentions).append(one)
    return ForgottenEntry(entry=entry, engrams=holding, mentions=mentions)


def _facts(entry: TopicEntry | EngramEntry) -> list[str]:
    if isinstance(entry, TopicEntry):
        return [entry.content]
    return statements_in(entry.content)


def _is_about(engram: EngramEntry, entry: TopicEntry | EngramEntry) -> bool:
    topics = str(engram.metadata.get(TOPICS, "")).split()
    return isinstance(entry, TopicEntry) and entry.topic in topics


def _names(fact: str) -> list[str]:
    """Return what is written as a name or a number."""
    found = (word for word in _WORD.findall(fact) if len(word) >= _LEAST_LETTERS and not word.islower())
    return [spaced_words(word) for word in found if index_text(word) not in STOP_WORDS]


def _common_run(content: str, said: str) -> str:
    """Return the longest run of words that what was saved and what was said have in common; empty if it tells nothing.

    >>> _common_run("The user says: Graz", "I live in Graz."), _common_run("The user is Ana.", "The tea is cold.")
    ('graz', '')
    """
    saved, told = spaced_words(content).split(), spaced_words(said).split()
    start, _, length = SequenceMatcher(None, saved, told, autojunk=False).find_longest_match()
    run = saved[start : start + length]
    return " ".join(run) if set(run) - STOP_WORDS else ""
