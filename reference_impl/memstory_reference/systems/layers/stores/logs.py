"""What is kept apart from memory: append-only logs, never searched, in no prompt. SQLite and Postgres."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    """One kind of records: its table, what makes a record of its fields, and how the columns that are its own are read.

    The last column may be a text that a person typed: then it holds any character, even half of one.
    """

    table: str
    make: Callable[..., R]
    own: Mapping[str, Callable[[str], object]]
    is_typed: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that are its own: three."""
        return tuple(self.own)

    def row(self, record: R) -> Row:
        """Return a record as the values of its columns: texts, and names of things as JSON."""
        values = (getattr(record, name) for name in self.own)
        first, second, last = (one if isinstance(one, str) else json.dumps(list(one)) for one in values)
        return record.id, record.owner, record.session, record.at, first, second, last

    def record(self, row: Row) -> R:
        """Return the record of a row; ValueError or TypeError for one that memstory has not written so."""
        identifier, owner, session, at, *values = row
        own = {name: read(value) for (name, read), value in zip(self.own.items(), values, strict=True)}
        return self.make(id=identifier, owner=owner, session=session, at=at, **own)


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
