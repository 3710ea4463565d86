"""The last turns of a conversation, which a prompt holds without any search (M-11, MF-10, MF-11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memstory_reference.input_checks import DEFAULT_LIMITS

USER, ASSISTANT = "user", "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowEntry:
    """One message of a conversation."""

    role: str
    content: str
    timestamp: datetime


class ContextWindow:
    """At most `turns` turns of at most `characters` together, beginning with what the user said."""

    def __init__(self, turns: int, characters: int = DEFAULT_LIMITS.max_window_characters) -> None:
        self._turns = turns
        self._characters = characters
        self._entries: tuple[WindowEntry, ...] = ()

    def add(self, entry: WindowEntry) -> None:
        """Append an entry; the oldest go, and an answer whose question went goes with it."""
        kept = (*self._entries, entry)[-2 * self._turns :] if self._turns else ()
        while kept and (kept[0].role != USER or sum(len(one.content) for one in kept) > self._characters):
            kept = kept[1:]
        self._entries = kept

    @property
    def entries(self) -> Sequence[WindowEntry]:
        """The entries, oldest first; nothing that is done to them changes the window."""
        return self._entries

    def restore(self, entries: Sequence[WindowEntry]) -> None:
        """Go back to an earlier state: a turn that failed leaves no question without its answer."""
        self._entries = tuple(entries)

    def clear(self) -> None:
        """Forget all turns: a new session."""
        self._entries = ()
