"""Words by name, each declared once; and the message for an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeVar

LISTED: Final = 40
"""Up to this many known names are all listed; of more, the nearest."""

NEAREST: Final = 5

OTHER_WORDS: Final[Mapping[str, str]] = {
    "matches": "regex", "match": "regex", "pattern": "regex", "like": "regex",
    "eq": "equals", "is": "equals", "equal_to": "equals", "same": "equals", "includes": "contains", "has": "contains",
    "gte": "ge", "min": "ge", "at_least": "ge", "lte": "le", "max": "le", "at_most": "le", "size": "length",
    "in": "one_of", "enum": "one_of", "ignore_case": "icontains", "isinstance": "type",
    "not_contains": "not", "not_equals": "not", "ne": "not",
    "top": "first", "contains": "includes", "without": "excludes", "len": "count", "sorted": "order",
    "remember": "add", "store": "add", "save": "add", "query": "search", "find": "search", "recall": "search",
    "forget": "delete", "remove": "delete", "edit": "update", "change": "update", "ask": "say", "tell": "say",
    "sleep": "wait", "kill": "crash", "reopen": "restart",
}  # fmt: skip
"""What other tools call a word, and what a story calls it."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=_Named)


class Registry(dict[str, Entry]):
    """Entries by name, in the order in which they were added; `changes` counts additions and removals."""

    def __init__(self, noun: str) -> None:
        super().__init__()
        self._noun = noun
        self.changes = 0

    def add(self, entry: Entry) -> Entry:
        """Add `entry` and return it; raise ValueError if its name is taken."""
        if entry.name in self:
            raise ValueError(f"the {self._noun} '{entry.name}' is declared twice")
        self[entry.name] = entry
        self.changes += 1
        return entry

    def remove(self, name: str) -> None:
        """Remove the entry of this name."""
        del self[name]
        self.changes += 1


def suggestion(found: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?` for the nearest of the `known` names, or an empty text if none is near.

    >>> suggestion("contians", ["contains", "equals"])
    " Did you mean 'contains'?"
    >>> suggestion("zzz", ["contains"])
    ''
    """
    name = intended_name(found, known)
    return f" Did you mean '{name}'?" if name else ""


def intended_name(found: str, known: Iterable[str]) -> str | None:
    """Return the `known` name that other tools call `found`, or else the most similar one; None if none is near.

    >>> intended_name("recal@3", ["mrr", "recall@5"])
    'recall@3'
    """
    names = {name.casefold(): name for name in known}
    other = OTHER_WORDS.get(found.casefold(), "")
    close = [other] if other in names else difflib.get_close_matches(found.casefold(), names, n=1, cutoff=0.6)
    if not close:
        return None
    name, (_, at, k) = names[close[0]], found.partition("@")
    # A metric is known for any k: what was written stays.
    return f"{name.partition('@')[0]}@{k}" if at and k.isdigit() and "@" in name else name


def unknown_name_message(found: str, noun: str, known: Iterable[str], unlisted: Iterable[str] = ()) -> str:
    """Return "unknown NOUN 'FOUND'." with the nearest name and the known ones, or of more than `LISTED` the nearest.

    Args:
        found: What was written.
        noun: What it should name, such as `step`.
        known: The names that it can be.
        unlisted: More names that can be the nearest, but are not listed.
    """
    names = sorted(known)
    listed = f"Known: {', '.join(names)}."
    if len(names) > LISTED:
        close = difflib.get_close_matches(found, names, n=NEAREST, cutoff=0)
        listed = f"Known are {len(names)}, the nearest: {', '.join(close)}."
    return f"unknown {noun} '{shorten(found)}'.{suggestion(found, [*names, *unlisted])} {listed}"


def shorten(text: str, limit: int = 60) -> str:
    """Return `text` on one line, cut to `limit` characters."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
