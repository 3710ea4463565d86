"""How much is removed from a result before it is written: a term shared by stories, options and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

Level = Literal["none", "secrets", "texts"]
LEVELS: Final[Sequence[Level]] = get_args(Level)
DEFAULT_LEVEL: Final[Level] = "secrets"


def stricter(one: Level, other: Level) -> Level:
    """Return the level that leaves less.

    >>> stricter("none", "secrets")
    'secrets'
    """
    return max(one, other, key=LEVELS.index)
