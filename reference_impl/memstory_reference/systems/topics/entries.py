"""Topics and engrams: their names and rows, in which order engrams come, and what goes when one is forgotten; pure.

An engram of a turn may say what was told or only what was asked: what was told comes first (LF-19).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import Literal

from memstory.contract.texts import nearest
from memstory.contract.values import Hit, Json
from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_mapping, checked_moment, checked_text, is_finite, short_repr
from memstory_reference.ports import Match, Primitive, Record
from memstory_reference.system_memory import ForgetResult
from memstory_reference.text.sentences import is_no_answer, sentences, tells_nothing
from memstory_reference.text.words import STOP_WORDS, index_text, plain_words, spaced_words, stems

PREFIXES = ("user", "project", "constraint")
MAX_TOPIC_CHARACTERS = 200

_STRICT = re.compile(r"(?:user|project|constraint)(?:\.[a-z0-9_]+)+")
_GENERIC = frozenset(stems("current favorite favourite name preference"))
_RELAXED = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*")


def topic_key(topic: str, *, strict: bool = True) -> str:
    """Return the topic under which a fact is written, or raise InputError.

    Without `strict` any dotted words will do, except for `feedback`, which belongs to engrams.

    >>> topic_key(" User.Name ")
    'user.name'
    """
    key = lookup_key(topic)
    grammar = _STRICT if strict else _RELAXED
    if key is None or not grammar.fullmatch(key) or key.split(".", 1)[0] == "feedback":
        raise InputError(_refusal(topic, strict=strict))
    return key


def lookup_key(topic: str) -> str | None:
    """Return the key under which `topic` would be stored, or None where nothing can be stored under it.

    Letters outside ASCII are refused before case is folded: the Kelvin sign would become a plain k.

    >>> lookup_key("user.language "), lookup_key("user.na\u043ce")
    ('user.language', None)
    """
    stripped = topic.strip()
    if not stripped.isascii() or not 0 < len(stripped) <= MAX_TOPIC_CHARACTERS:
        return None
    return stripped.lower()


def is_key(key: str) -> bool:
    """Say whether something may be stored under `key`, which is in lower case."""
    return _RELAXED.fullmatch(key) is not None


def topic_id(owner: str, topic: str) -> str:
    """Return the id of an owner's topic: the same at every write, so that a newer value replaces the older.

    >>> topic_id("ann", "user.name")
    'topic:ann:user.name'
    """
    return f"topic:{owner}:{topic}"


def speaks_of(topic: str, text: str) -> bool:
    """Say whether a text has every word of a topic's name that says what it is about.

    >>> [speaks_of("user.tea_preference", text) for text in ("Now I like green tea.", "That is my preference.")]
    [True, False]
    """
    words = set(stems(topic.rpartition(".")[2]))
    return (words - _GENERIC or words) <= set(stems(text))


def _refusal(topic: str, *, strict: bool) -> str:
    shape = (
        "user.*, project.* or constraint.* with words of a-z, 0-9 and _ between the dots, such as 'user.name'"
        if strict
        else "words of a-z, 0-9 and _ with dots between them; not feedback.*, which belongs to engrams"
    )
    head = topic.strip().lower().split(".", 1)[0][:40]
    near = nearest(head, PREFIXES) if strict and head not in PREFIXES else None
    hint = f" Did you mean '{near}.'?" if near else ""
    return f"topic {topic[:80]!r} is not allowed; allowed: {shape}, at most {MAX_TOPIC_CHARACTERS} characters.{hint}"


MAX_METADATA_KEYS = 50
MAX_METADATA_CHARACTERS = 10_000
_INT64 = 1 << 63

RESERVED = frozenset({"id", "is_recall", "owner", "reward", "rewarded", "topic", "topics", "type", "user_id"})
"""Metadata that only the memory itself writes."""

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,99}")


def clamped_reward(value: object) -> float:
    """Return a reward within [-1, 1]; what is not a finite number is refused.

    >>> clamped_reward(5)
    1.0
    """
    if not isinstance(value, (int, float)) or not is_finite(value):
        raise InputError(f"reward {short_repr(value)} is not allowed; allowed: finite numbers")
    return float(min(1.0, max(-1.0, value)))


def check_metadata(metadata: object) -> dict[str, Primitive]:
    """Return what callers may attach to an engram: flat, of simple types, no reserved keys; None is left out."""
    given = checked_mapping({} if metadata is None else metadata, "metadata")
    if len(given) > MAX_METADATA_KEYS:
        raise InputError(f"metadata has {len(given)} keys; at most {MAX_METADATA_KEYS}")
    checked = {key: _checked_value(key, value) for key, value in given.items() if value is not None}
    if "timestamp_utc" in checked:
        checked["timestamp_utc"] = stored_moment(checked["timestamp_utc"])
    return checked


def timestamp(moment: datetime) -> str:
    """Return `moment` as stored: UTC, microseconds always, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def stored_moment(value: object) -> str:
    """Return an ISO 8601 moment with an offset as stored, or raise InputError."""
    return timestamp(checked_moment(value, "timestamp_utc"))


def _checked_value(key: str, value: Json) -> Primitive:
    if not _KEY.fullmatch(key):
        raise InputError(f"metadata key {key!r:.80} is not allowed; allowed: a letter, then letters, digits, _ . -")
    if key in RESERVED:
        raise InputError(f"metadata key {key!r} is reserved; the memory itself writes {', '.join(sorted(RESERVED))}")
    if isinstance(value, str):
        return checked_text(value, f"metadata {key!r}", MAX_METADATA_CHARACTERS, may_be_blank=True)
    if isinstance(value, bool):
        return value
    if (isinstance(value, int) and -_INT64 <= value < _INT64) or (isinstance(value, float) and is_finite(value)):
        return value
    raise InputError(f"metadata {key!r} must be text, a boolean or a finite number, not {type(value).__name__}")


REWARD_WEIGHT = 0.1
ECHO_MARGIN = 0.05
"""An engram of a recall must be nearer by more than this to come before what the user said."""

CANDIDATES = 4
"""Engrams looked at first for each one asked for."""

TOPIC: Literal["topic"] = "topic"
EPISODIC: Literal["episodic"] = "episodic"
TOPICS = "topics"
"""Metadata of a turn: the topics that it saved or looked up, parted by blanks."""

SINCE = "since"
"""Metadata of a topic: the ids of the newest engrams that spoke of it after it was saved, parted by blanks."""

_ANSWER = "\nA: "
# Vectors are float32: a cosine of exactly 0.3 may be computed as 0.29999998, and still is at the threshold.
_ROUNDING = 1e-6


def kind_of(record: Record) -> str:
    """Return which of the two kinds a row is."""
    return TOPIC if record.metadata.get("type") == TOPIC else EPISODIC


def name_of(topic: Record) -> str:
    """Return the key of a topic."""
    return str(topic.metadata["topic"])


def time_of(record: Record) -> str:
    """Return when it was said, as stored; empty if a damaged row does not say."""
    return str(record.metadata.get("timestamp_utc", ""))


def since_of(topic: Record) -> list[str]:
    """Return the ids of what was said of a topic since it was saved."""
    return str(topic.metadata.get(SINCE, "")).split()


def hit_of(record: Record) -> Hit:
    """Return a row that was looked up or listed; it has no score."""
    if kind_of(record) == TOPIC:
        return Hit(id=record.id, text=record.text, kind=TOPIC, key=name_of(record), created_at=time_of(record))
    # Sorted: a store gives keys in any order, and what is recorded twice must be the same twice.
    metadata = {key: value for key, value in sorted(record.metadata.items()) if value is not None}
    return Hit(id=record.id, text=record.text, kind=EPISODIC, created_at=time_of(record) or None, metadata=metadata)


def found_hit(match: Match) -> Hit:
    """Return an engram that was found by meaning; `score` is the cosine, `explain` says how it came to its place."""
    hit = hit_of(match.record)
    explain = {
        "similarity": float(match.similarity),
        "reward": hit.metadata.get("reward", 0.0),
        "is_recall": hit.metadata.get("is_recall", False),
        "rank_score": effective_score(match),
    }
    return replace(hit, score=float(match.similarity), explain=explain)


def all_words(hit: Hit) -> str:
    """Return all that a memory tells, its key too."""
    return f"{(hit.key or '').replace('.', ' ')} {hit.text}"


def turn_text(query: str, answer: str) -> str:
    """Return what an engram says of a turn."""
    return f"Q: {query}{_ANSWER}{answer}"


def user_words(content: str) -> str:
    """Return what the user said in an engram: the question of a turn, else all of it."""
    return content.removeprefix("Q: ").partition(_ANSWER)[0]


def statements_in(content: str) -> list[str]:
    """Return the sentences of an engram in which the user told something."""
    return [one for one in sentences(user_words(content)) if not tells_nothing(one)]


def rank_engrams(candidates: Sequence[Match], *, top_k: int, min_score: float) -> list[Match]:
    """Return the best `top_k` of those at or above `min_score`, by `effective_score`; ties by score, then id.

    Engrams in which nothing was told come last, and other recalls take at most half of the places while there is
    something first-hand.

    >>> a = Match(record=Record(id="a", text=""), similarity=0.82)
    >>> b = Match(record=Record(id="b", text="", metadata={"reward": 1.0}), similarity=0.78)
    >>> [found.record.id for found in rank_engrams([a, b], top_k=2, min_score=0.3)]
    ['b', 'a']
    """
    admitted = sorted((found for found in candidates if found.similarity >= min_score - _ROUNDING), key=_best_first)
    empty = [found for found in admitted if is_empty(found.record)]
    told = [found for found in admitted if not is_empty(found.record)]
    first_hand = [found for found in told if not is_recall(found.record)]
    recalls = [found for found in told if is_recall(found.record)]
    best = [*first_hand, *recalls[: max(top_k // 2, top_k - len(first_hand))]]
    return [*sorted(best, key=_best_first), *empty][:top_k]


def is_settled(found: Sequence[Match], *, top_k: int, bonus: float) -> bool:
    """Say whether no engram beyond `found`, nearest first, can be among the best; reward gives it `bonus` at most."""
    own = (one for one in found if not is_empty(one.record) and not is_recall(one.record))
    scores = sorted(map(effective_score, own), reverse=True)
    return len(scores) >= top_k and scores[top_k - 1] >= found[-1].similarity + bonus


def is_empty(engram: Record | Hit) -> bool:
    """Say whether a turn told the memory nothing: only questions and courtesies, looked up or without an answer."""
    question, has_answer, answer = engram.text.removeprefix("Q: ").partition(_ANSWER)
    if not has_answer or not tells_nothing(question):
        return False
    return is_recall(engram) or is_no_answer(answer) or "?" not in question


def is_recall(engram: Record | Hit) -> bool:
    """Say whether a memory was looked up for the turn: then it may only repeat what is remembered."""
    return engram.metadata.get("is_recall") is True


def effective_score(found: Match) -> float:
    """Return the score that decides the order: similarity + 0.1 reward, and 0.05 less for a recall's own engram."""
    reward = found.record.metadata.get("reward", 0.0)
    rating = min(1.0, max(-1.0, float(reward))) if isinstance(reward, (int, float)) else 0.0
    echo = ECHO_MARGIN if is_recall(found.record) else 0.0
    return float(found.similarity) + REWARD_WEIGHT * rating - echo


def _best_first(found: Match) -> tuple[float, bool, float, str]:
    # Rounded, so that float32 noise does not decide between equals: then what is not an echo comes first.
    score = -round(effective_score(found), 6)
    return score, is_recall(found.record), -round(float(found.similarity), 6), found.record.id


def newer_about(topic: Record, told: Sequence[tuple[Record, Sequence[str]]]) -> list[str]:
    """Return the ids of the engrams, each with its statements, that speak of a topic and are not older than it."""
    name, saved = name_of(topic), str(topic.metadata["timestamp_utc"])
    return [
        one.id
        for one, said in told
        if str(one.metadata["timestamp_utc"]) >= saved and any(speaks_of(name, sentence) for sentence in said)
    ]


_WORD = re.compile(r"[^\W_]+")
_LEAST_WORDS, _LEAST_LETTERS = 3, 3


def find_forgotten(entry: Record, engrams: Sequence[Record], topics: Sequence[Record] = ()) -> ForgetResult:
    """Return what goes with `entry`: turns that had to do with its topic, or say the same, or repeat it in an answer.

    `entry` comes first, then the `topics` that it named, if it is a turn, and whose value it says, then turns. A name
    alone does not say whose it is: other turns that mention it are listed and kept. Common short words say nothing.
    """
    saved = list[Record]()
    if kind_of(entry) == EPISODIC:
        said = [spaced_words(one) for one in statements_in(entry.text)]
        named = [one for one in topics if _is_about(entry, one)]
        saved = [one for one in named if any(_common_run(one.text, sentence) for sentence in said)]
    gone, mentions = {one.id: one for one in (entry, *saved)}, dict[str, Record]()
    for one in (entry, *saved):
        holding, others = _engrams_about(one, [other for other in engrams if other.id != entry.id])
        gone |= {other.id: other for other in holding}
        mentions |= {other.id: other for other in others}
    kept = [one for one in mentions.values() if one.id not in gone]
    return ForgetResult(gone=[*map(hit_of, gone.values())], mentions=[*map(hit_of, kept)])


def _engrams_about(entry: Record, engrams: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Return the engrams that hold what an entry says, and those that only mention it or something in it."""
    is_topic = kind_of(entry) == TOPIC
    told = [entry.text] if is_topic else statements_in(entry.text)
    names = {name for fact in told for name in _names(fact)}
    if is_topic:
        # A model may save more words than were said: what both have is the fact that answers repeat.
        said_of_it = [said for one in engrams if _is_about(one, entry) for said in statements_in(one.text)]
        told += [run for run in (_common_run(entry.text, said) for said in said_of_it) if run]
        # Names are names in the user's words, in whatever case they were saved.
        saved = spaced_words(entry.text)
        names |= {name for said in said_of_it for name in _names(said) if name in saved}
    facts = [(spaced_words(fact), len(plain_words(fact)) >= _LEAST_WORDS) for fact in told]
    later = set(since_of(entry)) if is_topic else set()
    holding, mentions = list[Record](), list[Record]()
    for one in engrams:
        text = spaced_words(one.text)
        is_named = any(name in text for name in names)
        is_same = any(fact in text and (is_long or (is_named and is_recall(one))) for fact, is_long in facts)
        if is_same or is_named or one.id in later or _is_about(one, entry):
            (holding if is_same or _is_about(one, entry) else mentions).append(one)
    return holding, mentions


def _is_about(engram: Record, entry: Record) -> bool:
    return kind_of(entry) == TOPIC and name_of(entry) in str(engram.metadata.get(TOPICS, "")).split()


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
