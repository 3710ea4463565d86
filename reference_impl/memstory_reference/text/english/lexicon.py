"""The English of `english.yaml` as the rules use it: words, alternatives, kinds."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import yaml

_ENGLISH: dict[str, Any] = yaml.safe_load((files(__package__) / "english.yaml").read_text(encoding="utf-8"))


def exemplar_table(name: str) -> list[tuple[str, str]]:
    """Return exemplars, each with its label."""
    rows = [line.partition(": ") for line in _ENGLISH[name].strip().splitlines()]
    return [(label, text) for label, _, texts in rows for text in texts.split(". ")]


def wordset(name: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(_ENGLISH[name].split())


def alternatives(name: str) -> list[str]:
    """Return the alternatives of a list, one by one."""
    return str(_ENGLISH[name]).split(" | ")


def phrase_pattern(name: str) -> str:
    """Return the alternatives of a list as one pattern; each may be a pattern itself."""
    return f"(?:{'|'.join(alternatives(name))})"


def pattern(text: str) -> re.Pattern[str]:
    """Return a pattern that takes capitals and small letters alike."""
    return re.compile(text, re.IGNORECASE)


STOP_WORDS, PLAIN_WORDS, PROJECT_WORDS = wordset("stop_words"), wordset("plain_words"), wordset("project_words")
LIVING, STATES, NUMBERS = wordset("living"), wordset("states"), wordset("numbers")
OF_MANY = tuple(alternatives("of_many"))
KIND_OF: dict[str, str] = {name: kind for kind, names in _ENGLISH["kinds"].items() for name in names.split()}
SAME_WORDS: dict[str, str] = {word: same for same, words in _ENGLISH["same"].items() for word in words.split()}
PASTS: dict[str, str] = {past: row.split()[0] for row in _ENGLISH["pasts"].split(" | ") for past in row.split()[1:]}
REPLIES: dict[str, str] = _ENGLISH["replies"]
EXPANSIONS: list[tuple[str, str]] = [(pattern, full) for pattern, full in _ENGLISH["expansions"]]
SINCE = pattern(
    rf"^{phrase_pattern('since')} (?:the |last |this |next )?(?:[\w.]+ ){{0,2}}?"
    rf"(?:\d[\w.:-]*|{phrase_pattern('months')}|{phrase_pattern('weekdays')}|yesterday|today|tomorrow|now|noon|midnight|"
    r"morning|week|month|year|spring|summer|autumn|winter)(?: on(?:wards)?)?,? "
    r"(?=(?:I|my|we|our|it|he|she|they)\b)"
)
"""From when on a statement holds, said before it; no part of what it is about."""
WHEN = rf"(?:the |every |next )?(?:\d|{phrase_pattern('months')}\b|{phrase_pattern('weekdays')}\b|noon|midnight)"
