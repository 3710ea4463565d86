"""Whether a text occurs in what a memory shows, in any spelling."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from memstory.contract.values import Tree


def is_in(text: str, seen: Tree) -> bool:
    """Return whether `text` is in `seen`, whatever the case, the form of its accents and the white space.

    >>> is_in("Café  noir", [{"text": "A CAFE\u0301 noir."}])
    True
    """
    if isinstance(seen, Mapping):
        return any(is_in(text, inner) for pair in seen.items() for inner in pair)
    if isinstance(seen, (list, tuple)):
        return any(is_in(text, inner) for inner in seen)
    return _plain(text) in _plain(str(seen))


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
