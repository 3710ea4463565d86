"""Words of messages: the name that is probably meant by one that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(found: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `found`, whatever their case; None if none does."""
    names = {name.casefold(): name for name in known}
    close = get_close_matches(found.casefold(), names, n=1)
    return names[close[0]] if close else None


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name, to be appended to a sentence; empty if none is near.

    >>> did_you_mean("Serch", ["search", "add"]), did_you_mean("x", ["search", "add"])
    (" Did you mean 'search'?", '')
    """
    name = nearest(found, known)
    return f" Did you mean '{name}'?" if name else ""
