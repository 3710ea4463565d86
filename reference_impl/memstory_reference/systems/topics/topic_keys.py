"""The names of standing facts: dots between words, under one of three prefixes, and one id for each owner's topic."""

from __future__ import annotations

import re

from memstory.contract.texts import nearest
from memstory_reference.errors import InputError
from memstory_reference.text.words import stems

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


def is_under(topic: str, prefix: str) -> bool:
    """Say whether `topic` is `prefix` or is under it; an empty prefix holds all.

    >>> is_under("user.name", "user."), is_under("user.name", "user.na"), is_under("user.name", "")
    (True, False, True)
    """
    stem = prefix.strip().lower().rstrip(".")
    return not stem or topic == stem or topic.startswith(f"{stem}.")


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
