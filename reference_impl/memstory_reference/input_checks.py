"""What callers of every system may give: one check for each kind of argument, made before anything is read or written.

Each check returns the value as it may be used, or raises InputError: what it is, what was given, what is allowed. What
a system allows besides, such as blank texts or reserved keys, it says itself.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any

from memstory_reference.errors import InputError
from memstory_reference.setting_rules import ShippedSettings, count_rule

DEFAULT_OWNER = "default"
"""Whose memory it is where nobody is named: that of programs, and of the MCP server."""

MAX_OWNER_CHARACTERS = 512
HIGHEST_COUNT = 1_000
_REFUSED_IN_NAMES = frozenset({"Cc", "Zl", "Zp"})
"""Control characters and line ends: names stand on one line of messages, logs and prompts."""


MemoryCharacters = Annotated[int, count_rule(10_000_000)]
QueryCharacters = Annotated[int, count_rule(1_000_000)]
WindowCharacters = Annotated[int, count_rule(10_000_000)]
ResultCharacters = Annotated[int, count_rule(1_000_000, 200)]
PromptCharacters = Annotated[int, count_rule(10_000_000, 1_000)]
ToolCalls = Annotated[int, count_rule(1_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much each part may hold, in characters, and how many tools one reply of a model may call.

    A system's settings have those of them that it needs.
    """

    max_memory_characters: MemoryCharacters = 100_000
    max_query_characters: QueryCharacters = 10_000
    max_window_characters: WindowCharacters = 48_000
    max_result_characters: ResultCharacters = 16_000
    max_prompt_characters: PromptCharacters = 24_000
    max_tool_calls: ToolCalls = 16


DEFAULT_LIMITS = Limits()


def limits_of(settings: object) -> Limits:
    """Return the limits that are among `settings`, with the defaults for those that the system does not have."""
    given = {one.name: getattr(settings, one.name) for one in fields(Limits) if hasattr(settings, one.name)}
    return Limits(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings(ShippedSettings):
    """Settings of a memory whose operator decides how much each part of a talk may hold."""

    max_memory_characters: MemoryCharacters
    max_query_characters: QueryCharacters
    max_window_characters: WindowCharacters
    max_result_characters: ResultCharacters
    max_tool_calls: ToolCalls

    @property
    def limits(self) -> Limits:
        """How much each part may hold."""
        return limits_of(self)


def plain_text(value: object, what: str) -> str:
    """Return a text as it is given."""
    if not isinstance(value, str):
        raise InputError(f"{what} must be text, not {type(value).__name__}")
    return value


def checked_owner(owner: object, what: str = "owner") -> str:
    """Return the name of an owner or a session; a missing owner is never a shared one."""
    owner = plain_text(owner, what)
    if not owner.strip():
        advice = "say whose memory is meant" if what == "owner" else f"give it 1 to {MAX_OWNER_CHARACTERS} characters"
        raise InputError(f"{what} is blank; {advice}")
    is_one_line = not any(unicodedata.category(sign) in _REFUSED_IN_NAMES for sign in owner)
    if len(owner) > MAX_OWNER_CHARACTERS or not is_one_line or not is_storable(owner):
        raise InputError(
            f"{what} {owner!r:.80} is not allowed; allowed: 1 to {MAX_OWNER_CHARACTERS} characters on one line, "
            "without half a surrogate pair"
        )
    return owner


def checked_text(text: object, what: str, at_most: int, setting: str = "", *, may_be_blank: bool = False) -> str:
    """Return text that can be stored: at most `at_most` characters, which `setting` decides where it is named."""
    text = plain_text(text, what)
    if not may_be_blank and not text.strip():
        raise InputError(f"{what} is blank")
    if len(text) > at_most:
        raise InputError(f"{what} has {len(text)} characters; at most {at_most}{setting and f' ({setting})'}")
    if not is_storable(text):
        raise InputError(f"{what} holds a NUL or half a surrogate pair, which cannot be stored")
    return text


def checked_memory(text: object, limits: Limits, what: str = "content") -> str:
    """Return a text that may be remembered."""
    return checked_text(text, what, limits.max_memory_characters, "max_memory_characters")


def checked_query(text: object, limits: Limits, *, may_be_blank: bool = False) -> str:
    """Return a text that may be searched for."""
    longest = limits.max_query_characters
    return checked_text(text, "query", longest, "max_query_characters", may_be_blank=may_be_blank)


def checked_texts(values: object, what: str, most: int, longest: int) -> tuple[str, ...]:
    """Return a list of texts; one text is not taken for the list of its characters."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(f"{what} must be a list of texts, not {type(values).__name__}")
    if len(values) > most:
        raise InputError(f"{what} has {len(values)} entries; at most {most}")
    return tuple(checked_text(one, f"{what}[{place}]", longest) for place, one in enumerate(values))


def checked_mapping(values: object, what: str) -> Mapping[str, Any]:
    """Return an object whose keys are text."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise InputError(f"{what} must be an object whose keys are text, not {type(values).__name__}")
    return values


def checked_count(value: object, what: str, low: int = 0, high: int = HIGHEST_COUNT) -> int:
    """Return a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{what} {short_repr(value)} is not allowed; allowed: whole numbers from {low} to {high}")
    return value


def checked_number(value: object, what: str, low: float, high: float) -> float:
    """Return a finite number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(f"{what} {short_repr(value)} is not allowed; allowed: numbers from {low:g} to {high:g}")
    return float(value)


def checked_choice(value: object, what: str, choices: Collection[str]) -> str:
    """Return one of the names that there are."""
    if isinstance(value, str) and value in choices:
        return value
    raise InputError(f"{what} {short_repr(value)} is unknown; allowed: {', '.join(choices)}")


def checked_moment(value: object, what: str, zone: tzinfo | None = None) -> datetime:
    """Return a moment in UTC, given as a datetime or in ISO 8601; without an offset it is of `zone`, if any."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and (moment.tzinfo or zone) is not None:
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # The message below says what is allowed.
    offset = "" if zone else " with an offset or Z"
    raise InputError(f"{what} {short_repr(value)} is not allowed; allowed: ISO 8601{offset}, years 1 to 9999")


def is_storable(text: str) -> bool:
    """Say whether every store can hold the text: no NUL, no half of a surrogate pair."""
    return "\0" not in text and (text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text))


def is_finite(value: object) -> bool:
    """Say whether this is a number that a store and a ranking can take."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False


def short_repr(value: object) -> str:
    """Return a value as a message shows it: at most 40 characters."""
    # repr() of a number of thousands of digits raises ValueError.
    if isinstance(value, int) and abs(value) >= 10**40:
        return "of more than 40 digits"
    return f"{value!r:.40}"
