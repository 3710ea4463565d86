"""What the `memory` command does with a memory, whichever system it is of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memstory.contract.values import Json
from memstory_reference.commands.memory_rows import Row

Confirm = Callable[[Sequence[Row], str | None], bool]
"""Shows rows and asks, or asks the given question; True is a yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskAnswer:
    """The same for programs and for people."""

    data: Json
    text: str


class Desk(Protocol):
    """One owner's part of a memory, or all owners' where none was named."""

    async def listed(self, kind: str | None, *, archived: bool) -> Sequence[Row]:
        """Return what is remembered, of one kind or of all."""
        ...

    async def search(self, text: str, top_k: int | None, min_score: float | None) -> Sequence[Row]:
        """Return what a text finds, best first."""
        ...

    async def named(self, names: Sequence[str]) -> Sequence[Row]:
        """Return the memories of these names or ids, each once; InputError if one is unknown."""
        ...

    async def with_echoes(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return the memories and those that repeat what they say, each once: what goes when they are forgotten."""
        ...

    async def forget(self, ids: Sequence[str]) -> Sequence[str]:
        """Delete memories; return the ids of those that were there."""
        ...

    async def forget_everything(self, confirm: Confirm) -> DeskAnswer | None:
        """Delete all of the owner's; None if `confirm` said no."""
        ...

    async def export(self) -> DeskAnswer:
        """Return the number of memories, and all of them as text."""
        ...

    async def status(self) -> DeskAnswer:
        """Return how much is remembered."""
        ...

    async def purge(self, days: float | None) -> int:
        """Delete what is older than the retention, or than `days`; return how much."""
        ...

    async def rate(self, memory_id: str, value: float) -> bool:
        """Rate a memory from -1 to 1; False if it is not there."""
        ...

    async def move(self, memory_id: str, *, into_use: bool) -> bool:
        """Take a memory out of use without deleting it, or use it again; False if it was so already."""
        ...
