"""What is kept apart from memory: append-only logs, never searched, in no prompt. SQLite and Postgres."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeAlias, TypeVar


class LogRecord(Protocol):
    """What every record says."""

    @property
    def id(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def at(self) -> datetime: ...


R = TypeVar("R", bound=LogRecord)
Row: TypeAlias = tuple[str, str, str, datetime, str, str, str]
"""Id, owner, session, moment, and the three columns that are a kind's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogKind(Generic[R]):
    """One kind of records: its table, the names of its columns, and how a record is written and read.

    The last column may be a text that a person typed: then it holds any character, even half of one.
    """

    table: str
    columns: tuple[str, str, str]
    is_typed: bool
    row: Callable[[R], Row]
    record: Callable[[Row], R]


class Log(Protocol[R]):
    """Append, look, delete."""

    async def aappend(self, record: R) -> None:
        """Add a record; one of an id that is there changes nothing."""
        ...

    async def alist(self, owner: str | None) -> list[R]:
        """Return an owner's records, oldest first; None asks for everybody's."""
        ...

    async def apurge(self, before: datetime) -> int:
        """Delete everybody's records from before this moment; return how many there were."""
        ...

    async def adelete_owner(self, owner: str) -> int:
        """Delete an owner's records; return how many there were."""
        ...

    async def aclose(self) -> None:
        """Release the log; closing twice is harmless."""
        ...
