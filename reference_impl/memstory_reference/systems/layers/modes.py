"""How durable a memory is: three tiers, of which the last is reserved (seed 003, C-18, CF-10)."""

from __future__ import annotations

from enum import StrEnum

from memstory_reference.errors import InputError
from memstory_reference.input_checks import short_repr


class MemoryMode(StrEnum):
    """Incognito leaves no byte on disk; synced is treated as local, and says so."""

    INCOGNITO = "incognito"
    LOCAL = "local"
    SYNCED = "synced"

    @property
    def is_durable(self) -> bool:
        """Whether anything is written to disk."""
        return self is not MemoryMode.INCOGNITO

    @property
    def sync(self) -> str:
        """What the status says about synchronisation: never more than is true."""
        return "not implemented" if self is MemoryMode.SYNCED else "off"


_ALIASES = {"guest": MemoryMode.INCOGNITO}


def parse_mode(name: object) -> MemoryMode:
    """Return the mode of this name; `guest` is a friendlier word for incognito.

    >>> parse_mode("Guest")
    <MemoryMode.INCOGNITO: 'incognito'>
    """
    if not is_mode(name):
        raise InputError(f"there is no memory mode {short_repr(name)}; allowed: {', '.join(MemoryMode)}, guest")
    folded = str(name).strip().lower()
    return _ALIASES.get(folded) or MemoryMode(folded)


def is_mode(name: object) -> bool:
    """Say whether there is a mode of this name."""
    folded = name.strip().lower() if isinstance(name, str) else ""
    return folded in _ALIASES or folded in set(MemoryMode)
