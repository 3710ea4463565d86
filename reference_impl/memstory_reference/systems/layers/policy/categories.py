"""Which facts last and which are of the moment (seed 003, C-27): the moment's are never stored for long."""

from __future__ import annotations

import re
from enum import StrEnum

STABLE = frozenset(
    {
        *("identity", "relationship", "work", "education", "location", "health", "coping_strategy", "preference"),
        *("interest", "skill", "value", "goal", "routine", "history", "possession", "note"),
    }
)
SESSION_ONLY = frozenset({"mood", "current_state", "small_talk", "logistics", "today"})

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Durability(StrEnum):
    """How long facts of a category may be kept; `unknown` ones must prove themselves in the session first."""

    STABLE = "stable"
    SESSION_ONLY = "session_only"
    UNKNOWN = "unknown"


def normal_category(name: str) -> str:
    r"""Return a category as it is stored; the empty text if it is not a name.

    >>> normal_category(" Coping Strategy "), normal_category("x]\n[rule")
    ('coping_strategy', '')
    """
    folded = re.sub(r"[\s-]+", "_", name.strip().lower())
    return folded if _NAME.fullmatch(folded) else ""


def durability(category: str) -> Durability:
    """Return how long facts of this category may be kept."""
    if category in SESSION_ONLY:
        return Durability.SESSION_ONLY
    return Durability.STABLE if category in STABLE else Durability.UNKNOWN
