"""Whether a text states a preference of its speaker: short, not asked, not quoted, not of the past (P-11, P-19).

The signal of a preference counts for importance wherever it occurs; only a statement becomes a procedural memory, which
comes first in every prompt. Anything else is found by its meaning. The rules know English.
"""

from __future__ import annotations

import re

from memstory_reference.text.sentences import sentences
from memstory_reference.text.words import count_tokens

LONGEST_STATEMENT = 40
"""Tokens; what is longer tells more than a preference."""

NOW = r"(?:(?:now|currently|usually|generally|really|still)\s+)?"
PREFERENCE = re.compile(rf"\b(?:I\s+{NOW}(?:prefer|always|hate)|my\s+favou?rite)\b", re.IGNORECASE)
_QUOTED = re.compile(
    r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u00ab[^\u00bb]*\u00bb|\u2018[^\u2019]*\u2019(?!\w)|(?<!\w)'[^']*'(?!\w)",
    re.DOTALL,
)
_REPORTED = re.compile(
    r"\b(?!I\b)[^\W\d]+\s+(?:said|says|told|tells|asked|asks|wrote|writes|thinks|thought|claims|claimed|answered|replied|"
    r"shouted|goes)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_CONDITION = re.compile(r"\b(?:if|whether|unless|when|suppose|imagine)\s+$", re.IGNORECASE)
_WENT = """
was were had did went came saw knew thought felt got made took gave said told found kept left met ran sat stood wrote
read ate drank drove spoke won lost hoped loved wanted used hated lived
"""
_PAST = re.compile(rf"always\s+(?:{'|'.join(_WENT.split())}|[a-z]{{2,}}ed)\b", re.IGNORECASE)
_OF_SOMETHING_PAST = re.compile(r"my\s+favou?rite\b[^.,;!?]*?\s(?:was|were)\b", re.IGNORECASE)
_ABOUT_NOTHING = re.compile(
    r"\b(?:it|that|this|these|those|they|he|she)(?:\s+(?:is|are)|['\u2019](?:s|re))\s+(?:\w+\s+){0,2}$", re.IGNORECASE
)


def states_preference(text: str) -> bool:
    """Say whether the text is a short statement of what its speaker prefers, always does, hates or likes best.

    >>> [states_preference(text) for text in ("I prefer tabs", "Do I prefer tabs?", "He told me 'I hate tabs'")]
    [True, False, False]
    """
    if count_tokens(text) > LONGEST_STATEMENT:
        return False
    return any(map(_states, sentences(_QUOTED.sub(" \u2026 ", text))))


def _states(sentence: str) -> bool:
    if sentence.rstrip("\"')\u2019\u201d ").endswith("?"):
        return False
    said = _REPORTED.sub("", sentence)
    if _PAST.search(said) or _OF_SOMETHING_PAST.search(said):
        return False
    found = PREFERENCE.search(said)
    if found is None:
        return False
    before = said[: found.start()]
    return not _CONDITION.search(before) and not _ABOUT_NOTHING.search(before)
