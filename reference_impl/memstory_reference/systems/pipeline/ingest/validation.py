"""What callers may give; whatever else is refused before anything is read or written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memstory_reference.errors import InputError
from memstory_reference.systems.pipeline.memory import ROLES, MemoryType, Utterance

MAX_TOP_K = 1_000
MAX_NAME = 512
_HIGHEST_SURROGATE = "\udfff"


class PipelineInputError(InputError, ValueError):
    """Input that the pipeline refuses; a ValueError too, as its specification has it."""


def checked_name(what: str, value: Any) -> str:
    """Return the id of a user or a session: a text that is not blank and can be written."""
    if not isinstance(value, str):
        raise PipelineInputError(f"{what}: expected a text, got {value!r:.80} ({type(value).__name__})")
    if not value.strip():
        raise PipelineInputError(f"{what}: it is empty; say whose memory is meant")
    if len(value) > MAX_NAME or not is_unicode(value):
        raise PipelineInputError(f"{what}: {value!r:.80} is too long (above {MAX_NAME}) or no valid Unicode")
    return value


def checked_utterance(utterance: Utterance, max_characters: int) -> Utterance:
    """Return the utterance if every field can be taken; an empty text can, and nothing is kept of it."""
    if not isinstance(utterance.text, str):
        raise PipelineInputError(f"text: expected a text, got {utterance.text!r:.80} ({type(utterance.text).__name__})")
    if len(utterance.text) > max_characters:
        raise PipelineInputError(
            f"text: {len(utterance.text)} characters; at most {max_characters}. Ingest it in parts, "
            "or raise max_text_characters"
        )
    checked_name("session_id", utterance.session_id)
    if utterance.role not in ROLES:
        raise PipelineInputError(f"role: {utterance.role!r:.80} is unknown; allowed: {', '.join(ROLES)}")
    if utterance.source is not None:
        checked_name("source", utterance.source)
    return utterance


def checked_type(what: str, value: Any) -> MemoryType:
    """Return the memory type that `value` names."""
    if isinstance(value, str) and value in set(MemoryType):
        return MemoryType(value)
    raise PipelineInputError(f"{what}: {value!r:.80} is unknown; allowed: {', '.join(MemoryType)}")


def checked_types(values: Sequence[Any] | None) -> tuple[MemoryType, ...]:
    """Return the types to recall; None and nothing mean all."""
    if isinstance(values, str):
        raise PipelineInputError(f"memory_types: expected a list of types, got the text {values!r:.80}")
    return tuple(dict.fromkeys(checked_type("memory_types", value) for value in values or MemoryType))


def checked_count(what: str, value: Any, highest: int | None = None) -> int:
    """Return a number that may count something: whole and not negative."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise PipelineInputError(f"{what}: expected a whole number, got {value!r:.80} ({type(value).__name__})")
    if value < 0 or (highest is not None and value > highest):
        limits = "0 or more" if highest is None else f"0 to {highest}"
        raise PipelineInputError(f"{what}: {value} is outside {limits}")
    return value


def is_unicode(text: str) -> bool:
    """Say whether the text has no lone surrogate, which no file can hold."""
    return text.isascii() or not any("\ud800" <= sign <= _HIGHEST_SURROGATE for sign in text)
