"""Which turns still say what is to be forgotten; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memstory_reference.systems.manager.memories.memory import Memory, MemoryType
from memstory_reference.text.asking import as_said
from memstory_reference.text.sentences import sentences

_WORD = re.compile(r"\w+")
_TURN = re.compile(r"\AUser: (?P<said>.*?)(?:\nAssistant: .*)?\Z", re.DOTALL)
_LEAST_WORDS = 3
"""Fewer words say nothing by themselves, and stand in many texts."""


def statements(memory: Memory) -> list[str]:
    """Return what a memory states, as plain words: of a turn what the user told, questions aside."""
    turn = _TURN.match(memory.content) if memory.memory_type is MemoryType.CONVERSATION else None
    told = (
        [one for one in sentences(turn["said"]) if not one.rstrip().endswith("?")]
        if turn
        else [as_said(memory.content)]
    )
    return [_plain(one) for one in told if len(_WORD.findall(one)) >= _LEAST_WORDS]


def states(text: str, stated: Iterable[str]) -> bool:
    """Say whether a text holds one of the statements, at the limits of words.

    >>> states('You told me: "My name is Alex".', [" my name is alex "])
    True
    """
    plain = _plain(text)
    return any(one in plain for one in stated)


def repeating_turns(memory: Memory, others: Iterable[Memory]) -> list[Memory]:
    """Return the turns that say what `memory` states."""
    stated = statements(memory)
    turns = (one for one in others if one.id != memory.id and one.memory_type is MemoryType.CONVERSATION)
    return [one for one in turns if states(one.content, stated)]


def _plain(text: str) -> str:
    return f" {' '.join(_WORD.findall(text)).casefold()} "
