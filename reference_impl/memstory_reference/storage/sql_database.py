"""What a store of blocking SQL needs of its database: SQLite in a file of its own, or Postgres, which many share.

A store writes SQL that both take as it is: marks are `?` without numbers, `ON CONFLICT DO NOTHING` or `DO UPDATE`
instead of `INSERT OR`, `RETURNING` instead of the last row's number, `EVERY` instead of no `LIMIT`. Its tables are
declared once, in the words of SQLite; `postgres.tables` says them in those of Postgres. Truth is 0 or 1.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from hashlib import blake2b
from typing import Any, Final, Protocol

from memstory_reference.storage.lane import SerialThread


def checksum(values: Sequence[str | float | None]) -> str:
    """Return 16 hexadecimal digits that another row of these columns shares by chance alone.

    >>> checksum(["tea", 1]) == checksum(["tea", 1]), checksum(["tea", 1]) == checksum(["tee", 1])
    (True, False)
    """
    return blake2b(json.dumps(list(values)).encode(), digest_size=8).hexdigest()


LOG = logging.getLogger(__name__)

EVERY: Final = 2**62
"""A LIMIT that leaves nothing out."""


class DamagedRows:
    """The rows of a database that no read gives, for they are damaged: each is said once."""

    def __init__(self) -> None:
        self._left_out = set[object]()

    @property
    def place(self) -> str:
        """What messages call the database."""
        raise NotImplementedError

    def leave_out(self, row: str, why: object, advice: str, key: object = None) -> None:
        """Say once of a damaged row that no read gives it; `key` tells it from others where its name does not."""
        key = row if key is None else key
        if key not in self._left_out:
            self._left_out.add(key)
            LOG.error("%s: %s is damaged and left out: %s. %s", self.place, row, why, advice)


class SqlRow(Protocol):
    """A row, whose values answer to their places and to the names of their columns."""

    def __getitem__(self, place: Any, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...

    def keys(self) -> Sequence[str]:
        """Return the names of the columns."""
        ...


class SqlCursor(Protocol):
    """What a statement gave: rows, where it is a query or has `RETURNING`, and how many it changed."""

    @property
    def rowcount(self) -> int:
        """How many rows were written."""
        ...

    def fetchone(self) -> Any:
        """Return the next row; None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlDatabase(Protocol):
    """Blocking; one connection, used by one thread at a time: call its users through `lane`.

    Whatever keeps it from being read or written is an `UnavailableError`.
    """

    lane: SerialThread

    @property
    def place(self) -> str:
        """What messages call it; no password is in it."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other processes write to it at the same time, so that nothing that was read stays true."""
        ...

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> SqlCursor:
        """Run one statement."""
        ...

    def executemany(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row."""
        ...

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Write new rows by the fastest way; all or none within a transaction."""
        ...

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[SqlRow]:
        """Return all rows of a query, for who leaves damaged ones out: a text that cannot be read comes as bytes."""
        ...

    def batches(self, sql: str, parameters: Sequence[object] = (), size: int = 500) -> Iterator[Sequence[SqlRow]]:
        """Yield what `rows` returns, so many at once."""
        ...

    def transaction(self, *owners: str) -> AbstractContextManager[None]:
        """All or nothing; nobody else is in a transaction of one of these owners meanwhile, in any process.

        What is read in it is still true when it is written.
        """
        ...

    def hold(self, name: str) -> AbstractAsyncContextManager[SqlDatabase]:
        """Hold `name` against everybody who uses the database; not to be taken twice by one task.

        What is done under it goes by the database that is lent, which fails once the lock is lost, and whose own
        `hold` takes one more.
        """
        ...

    def lend(self) -> AbstractAsyncContextManager[SqlDatabase]:
        """Lend a database for one call that no lock guards, so that such calls need not wait for one another."""
        ...

    def count_lost(self, *tables: str) -> int:
        """Return how many rows of these tables some read lacks."""
        ...

    def leave_out(self, row: str, why: object, advice: str, key: object = None) -> None:
        """Say once of a damaged row that no read gives it; `key` tells it from others where its name does not."""
        ...

    def forget_log(self) -> None:
        """Overwrite what the database itself has noted of deleted rows, where that is in its hands."""
        ...

    async def aclose(self) -> None:
        """Let go of the database once all that waits in the lane is done; closing twice is harmless."""
        ...
