"""The nearest of the names that are allowed, for messages about one that is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def hint(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known name, to be appended to a sentence; empty if none is near.

    >>> hint("serch", ["search", "add"]), hint("x", ["search", "add"])
    (" Did you mean 'search'?", '')
    """
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""
