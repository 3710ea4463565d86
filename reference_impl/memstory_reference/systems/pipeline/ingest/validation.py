"""What callers may give, beside what every system checks; all else is refused before anything is read or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memstory_reference.errors import InputError
from memstory_reference.input_checks import checked_choice, checked_owner, short_repr
from memstory_reference.systems.pipeline.chunk import ROLES, ChunkType, Utterance

MAX_TOKENS = 10_000_000
MAX_LISTED = 10_000_000
MAX_IDS = 100_000


def checked_utterances(utterances: Any, max_characters: int) -> list[Utterance]:
    """Return utterances that can be taken in; an empty text can, and nothing is kept of it."""
    if isinstance(utterances, str) or not isinstance(utterances, Sequence):
        raise InputError(f"utterances must be a list, not {type(utterances).__name__}")
    return [_checked_utterance(one, max_characters) for one in utterances]


def checked_text_in(text: Any, max_characters: int, what: str = "text", setting: str = "max_text_characters") -> str:
    """Return a text to be cleaned, which replaces what no file can hold: of at most so many characters, if any."""
    if not isinstance(text, str):
        raise InputError(f"{what} must be text, not {type(text).__name__}")
    if len(text) > max_characters:
        raise InputError(f"{what}: {len(text)} characters; at most {max_characters} ({setting}). Give it in parts")
    return text


def checked_type(value: Any, what: str) -> ChunkType:
    """Return the memory type that `value` names."""
    return ChunkType(checked_choice(value, what, list(ChunkType)))


def checked_types(values: Any) -> tuple[ChunkType, ...]:
    """Return the types to recall; None and nothing mean all."""
    if values is not None and (isinstance(values, str) or not isinstance(values, Sequence)):
        raise InputError(f"memory_types must be a list of types, not {type(values).__name__}")
    return tuple(dict.fromkeys(checked_type(value, "memory_types") for value in values or ChunkType))


def checked_flag(value: Any, what: str) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise InputError(f"{what} {short_repr(value)} is not allowed; allowed: true or false")
    return value


def _checked_utterance(utterance: Any, max_characters: int) -> Utterance:
    if not isinstance(utterance, Utterance):
        raise InputError(f"utterances must hold utterances, not {type(utterance).__name__}")
    checked_text_in(utterance.text, max_characters)
    checked_owner(utterance.session_id, "session_id")
    checked_choice(utterance.role, "role", ROLES)
    if utterance.source is not None:
        checked_owner(utterance.source, "source")
    hint = utterance.memory_type_hint
    return replace(utterance, memory_type_hint=None if hint is None else checked_type(hint, "memory_type_hint"))
