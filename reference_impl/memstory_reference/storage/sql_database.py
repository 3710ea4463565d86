"""What a store of blocking SQL needs of its database: SQLite in a file of its own, or Postgres, which many share.

A store writes SQL that both take as it is: marks are `?` without numbers, `ON CONFLICT DO NOTHING` or `DO UPDATE`
instead of `INSERT OR`, `RETURNING` instead of the last row's number, `EVERY` instead of no `LIMIT`. Its tables are
declared once, in the words of SQLite; `postgres.tables` says them in those of Postgres. Truth is 0 or 1.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, Final, ParamSpec, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import OtherModelError, StoreConflictError

LOG = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

AT_ONCE = 10_000
"""Values of one statement; SQLite takes 32,766."""

EVERY: Final = 2**62
"""A LIMIT that leaves nothing out."""


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


class SqlDatabase(ABC):
    """Blocking; one connection, used by one thread at a time: call its users through `lane`.

    Whatever keeps it from being read or written is an `UnavailableError`.
    """

    is_shared: ClassVar[bool]
    """Whether other processes write to it at the same time, so that nothing that was read stays true."""

    lane: SerialThread

    def __init__(self) -> None:
        self._left_out = set[object]()
        self._names = NamedLocks()
        self._of_holders = dict[asyncio.Task[Any] | None, Self]()
        self.lane = SerialThread(self.place, self._translate_errors)

    @property
    @abstractmethod
    def place(self) -> str:
        """What messages call it; no password is in it."""

    @property
    @abstractmethod
    def is_in_transaction(self) -> bool:
        """Whether what is written may still be taken back."""

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[object] = ()) -> SqlCursor:
        """Run one statement."""

    @abstractmethod
    def executemany(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row."""

    @abstractmethod
    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Write new rows by the fastest way; all or none within a transaction."""

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[object] = ()) -> Sequence[SqlRow]:
        """Return all rows of a query, for who leaves damaged ones out: a text that cannot be read comes as bytes."""

    @abstractmethod
    def batches(self, sql: str, parameters: Sequence[object] = (), size: int = 500) -> Iterator[Sequence[SqlRow]]:
        """Yield what `rows` returns, so many at once."""

    @abstractmethod
    def transaction(self, *owners: str) -> AbstractContextManager[None]:
        """All or nothing; nobody else is in a transaction of one of these owners meanwhile, in any process.

        What is read in it is still true when it is written.
        """

    @abstractmethod
    def _locked(self, name: str, held: Self | None) -> AbstractAsyncContextManager[Self]:
        """Lock `name` against other processes; lend what works under it: `held`, where a lock is held already."""

    @abstractmethod
    def _spare(self) -> AbstractAsyncContextManager[Self]:
        """Lend a database that nobody else uses meanwhile, or this one."""

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[Self]:
        """Hold `name` against everybody who uses the database; not to be taken twice by one task.

        What the task does under it goes by the database that is lent, which fails once the lock is lost.
        """
        task = asyncio.current_task()
        outer = self._of_holders.get(task)
        async with self._names.hold(name), self._locked(name, outer) as database:
            self._of_holders[task] = database
            try:
                yield database
            finally:
                del self._of_holders[task]
                if outer is not None:
                    self._of_holders[task] = outer

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Self]:
        """Lend a database for one call: that of the lock that the task holds, or one for which no call waits."""
        held = self._of_holders.get(asyncio.current_task())
        async with self._spare() if held is None else nullcontext(held) as database:
            yield database

    async def run(self, work: Callable[Concatenate[Self, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` does by a database that is lent for this, in its lane."""
        async with self.lend() as database:
            return await database.lane.run(work, database, *args, **kwargs)

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; closing twice is harmless."""

    async def aclose(self) -> None:
        """Let go of the database once all that waits in the lane is done; closing twice is harmless."""
        await self.lane.close(self.close)

    def count_lost(self, *_: str) -> int:
        """Return how many rows of these tables some read lacks: none, where a server says what is damaged."""
        return 0

    def leave_out(self, row: str, why: object, advice: str, key: object = None) -> None:
        """Say once of a damaged row that no read gives it; `key` tells it from others where its name does not."""
        key = row if key is None else key
        if key not in self._left_out:
            self._left_out.add(key)
            LOG.error("%s: %s is damaged and left out: %s. %s", self.place, row, why, advice)

    def forget_log(self) -> None:  # noqa: B027  (for who has nothing to do, it is done)
        """Overwrite what the database itself has noted of deleted rows, where that is in its hands."""

    @abstractmethod
    def _translate_errors(self) -> AbstractContextManager[None]:
        """Turn what the library raises into the errors that callers know."""


def checksum(values: Sequence[str | float | None]) -> str:
    """Return 16 hexadecimal digits that another row of these columns shares by chance alone.

    >>> checksum(["tea", 1]) == checksum(["tea", 1]), checksum(["tea", 1]) == checksum(["tee", 1])
    (True, False)
    """
    return blake2b(json.dumps(list(values)).encode(), digest_size=8).hexdigest()


def batches_of_values(values: Sequence[T]) -> Iterator[tuple[str, Sequence[T]]]:
    """Yield marks and distinct values, as many at once as a statement takes."""
    distinct = list(dict.fromkeys(values))
    for start in range(0, len(distinct), AT_ONCE):
        part = distinct[start : start + AT_ONCE]
        yield ", ".join("?" * len(part)), part


class NamedLocks:
    """Enough for a store that no other process has; others have their tasks wait here before they wait in the store."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def hold(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of this name; not to be taken twice by one task."""
        return self._locks.setdefault(name, asyncio.Lock())


class SerialThread:
    """Runs blocking calls in order, one at a time; a call that has begun is finished even if its caller is cancelled.

    `translated` turns the errors of the library into those that callers know.
    """

    def __init__(self, place: str, translated: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._place = place
        self._translated = translated
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lane")
        self._is_open = True

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call` returns; UnavailableError after `close`."""
        self.check_open()

        def work() -> T:
            with self._translated():
                return call(*args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def check_open(self) -> None:
        """Raise UnavailableError after `close`."""
        if not self._is_open:
            raise UnavailableError(f"the store at {self._place} was closed; open it again")

    async def close(self, last: Callable[[], object]) -> None:
        """Run `last` after all that waits, then take no more calls; closing twice is harmless."""
        if not self._is_open:
            return
        self._is_open = False
        ending = asyncio.get_running_loop().run_in_executor(self._thread, last)
        self._thread.shutdown(wait=False)
        await asyncio.shield(ending)  # a cancelled caller must not leave a file or a folder locked


IN_MEMORY = Path(":memory:")
"""The file of a database that no disk sees; it ends with its connection."""

CHECKED_BYTES = 50_000_000
"""A file of up to this size is checked at each opening, a larger one where it was not closed properly."""

_NO_UTF8 = "Could not decode to UTF-8"
_NO_COLUMN = "No item with that key"
_NO_ENTRY = re.compile(r"row (\d+) missing from index (.+)")
_ABOUT = "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)"
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "secure_delete = ON",  # what is forgotten is overwritten
)


class Database(SqlDatabase):
    """SQLite in a file."""

    is_shared = False

    def __init__(
        self,
        file: Path,
        *,
        schema: str | None,
        about: Mapping[str, str] | None = None,
        migrations: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Open `file`, or make it by the statements of `schema`; StoreConflictError if it was made as something else.

        With None for `schema` a file that nobody writes meanwhile, and that has no log, is opened to read alone: in a
        tenth of the time, for nothing is locked and no log is made.

        `about` is what has to be equal at each opening, such as the model of the vectors; it is kept in a table. A file
        of an earlier `schema` becomes one of this by its statements in `migrations`.
        """
        self.file = file
        self._lost: Mapping[str, int] = {}
        super().__init__()
        is_checked = schema is not None and _is_to_check(file)
        if schema is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        place = file if schema is not None else f"{file.absolute().as_uri()}?immutable=1"
        with self._translate_errors():
            self._db = sqlite3.connect(place, uri=schema is None, check_same_thread=False, isolation_level=None)
            self._db.row_factory = sqlite3.Row
            try:
                if schema is None:
                    self._db.execute("PRAGMA cache_size = -64")  # the kernel has the file in memory; one copy will do
                else:
                    if is_checked:
                        self._check()
                    self._prepare(schema, about or {}, migrations)
            except BaseException:
                self._db.close()
                raise

    @property
    def place(self) -> str:
        """The file."""
        return str(self.file)

    @property
    def is_in_transaction(self) -> bool:
        return self._db.in_transaction

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run one statement; UnavailableError where the file cannot be read or written."""
        with self._translate_errors():
            return self._db.execute(sql, parameters)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query, for who leaves damaged ones out: a text that is not UTF-8 comes as bytes."""
        return [row for part in self.batches(sql, parameters) for row in part]

    def batches(self, sql: str, parameters: Sequence[object] = (), size: int = 500) -> Iterator[list[sqlite3.Row]]:
        """Yield what `rows` returns, so many at once."""
        cursor, done = self.execute(sql, parameters), 0
        while True:
            with self._translate_errors():
                try:
                    part = cursor.fetchmany(size)
                except sqlite3.OperationalError as problem:
                    if self._db.text_factory is not str or not str(problem).startswith(_NO_UTF8):
                        raise
                    # Not from the beginning: to decode in Python takes longer.
                    self._db.text_factory = _decode
                    cursor = self._db.execute(sql, parameters)
                    part = list(islice(cursor, done, done + size))
            if not part:
                return
            done += len(part)
            yield part

    def count_lost(self, *tables: str) -> int:
        """Return how many rows of these tables some read lacks, by what was found when the file was opened."""
        return sum(self._lost.get(table, 0) for table in tables)

    def executemany(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement for each row."""
        with self._translate_errors():
            self._db.executemany(sql, rows)

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[object]]) -> None:
        """Write new rows."""
        marks = ", ".join("?" * (columns.count(",") + 1))
        self.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)  # noqa: S608  (our own names)

    @contextmanager
    def transaction(self, *_: str) -> Iterator[None]:
        """All or nothing; nobody else is in a transaction meanwhile, in any process."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # A disk that is full has rolled back already.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _locked(self, name: str, held: Database | None) -> AbstractAsyncContextManager[Database]:
        # The one connection of a file, which one process owns.
        return nullcontext(self)

    def _spare(self) -> AbstractAsyncContextManager[Database]:
        return nullcontext(self)

    def forget_log(self) -> None:
        """Restart the write-ahead log: until then it holds old pages, with deleted rows."""
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self._db.close()

    def _check(self) -> None:
        """Look for what is damaged: SQLite reads on without a word where a row or its place in an index is gone."""
        findings = [str(row[0]) for row in self._db.execute("PRAGMA integrity_check(1000000)")]
        if findings == ["ok"]:
            return
        self._lost = _lost_rows(self._db, findings)
        lost = ", ".join(f"{number} rows of {table}" for table, number in self._lost.items())
        LOG.error(
            "%s is damaged (%s; %d findings)%s. Restore a backup, or save what is left by an export",
            *(self.file, " ".join(findings[0].split()), len(findings), f": some reads lack {lost}" if lost else ""),
        )

    def _prepare(self, schema: str, about: Mapping[str, str], migrations: Mapping[str, str]) -> None:
        # What is in memory alone must not come to a disk by the sorting of many rows either.
        for pragma in (*_PRAGMAS, *(["temp_store = MEMORY"] if self.file == IN_MEMORY else [])):
            self._db.execute(f"PRAGMA {pragma}")
        is_new = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone() is None
        found = {} if is_new else dict(map(tuple, self._db.execute("SELECT name, value FROM about")))
        for name, value in about.items():
            if name != "schema" and found.get(name, value) != value:
                said = (
                    f"{self.file} was made with {name} {found[name]!r}, not {value!r}: open it with {found[name]!r}, "
                    "or use another folder"
                )
                again = f"{said}, or embed its texts again (memory reindex)"
                raise OtherModelError(again, found[name]) if name == "model" else StoreConflictError(said)
        if "schema" in about and found.get("schema", about["schema"]) != about["schema"]:
            self._migrate(found["schema"], about["schema"], migrations)
        # A new file together, so that the disk is waited for once and not for each statement.
        self._db.executescript(f"BEGIN IMMEDIATE;\n{_ABOUT};\n{schema};" if is_new else schema)
        self._db.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", list(about.items()))
        if is_new:
            self._db.execute("COMMIT")

    def _migrate(self, found: str, wanted: str, migrations: Mapping[str, str]) -> None:
        """Bring a file of an earlier schema to this one, whole or not at all."""
        if found not in migrations:
            raise StoreConflictError(
                f"{self.file} has schema {found!r}; this version of memstory reads {', '.join([*migrations, wanted])}. "
                "Open it with the version that made it, or use another folder"
            )
        noted = f"UPDATE about SET value = '{wanted}' WHERE name = 'schema'"  # noqa: S608
        self._db.executescript(f"BEGIN IMMEDIATE;\n{migrations[found]};\n{noted};\nCOMMIT;")
        LOG.warning("%s: taken over from an earlier version of memstory (schema %s, now %s)", self.file, found, wanted)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:
            # What SQLite says of a text that is not UTF-8 repeats the text.
            what = str(problem).partition(" with text ")[0]
            raise UnavailableError(
                f"{self.file} cannot be used: {what}. Give it room on its disk, restore a backup, or use another folder"
            ) from problem
        except IndexError as problem:
            if str(problem) != _NO_COLUMN:
                raise
            raise UnavailableError(
                f"{self.file} cannot be used: a column is gone. Restore a backup, or use another folder"
            ) from problem


def _decode(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _is_to_check(file: Path) -> bool:
    size = file.stat().st_size if file.is_file() else 0
    return 0 < size <= CHECKED_BYTES or Path(f"{file}-wal").exists()


def _lost_rows(db: sqlite3.Connection, findings: Sequence[str]) -> dict[str, int]:
    """Return, by table, how many rows are in the table and not in each index, or the other way round."""
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")]
    indexed = "SELECT name, tbl_name FROM sqlite_master WHERE type = 'index'"
    table_of: dict[str, str] = dict(map(tuple, db.execute(indexed)))
    without_entry = defaultdict[str, set[str]](set)
    for found in filter(None, map(_NO_ENTRY.fullmatch, findings)):
        without_entry[table_of.get(found[2], found[2])].add(found[1])
    lost = {}
    for table in tables:
        indexes = db.execute("SELECT name FROM pragma_index_list(?) WHERE NOT partial", (table,)).fetchall()
        ways = ["NOT INDEXED", *(f'INDEXED BY "{name}"' for (name,) in indexes)]
        reached = [_count_reachable(db, f'SELECT 1 FROM "{table}" {way}') for way in ways]  # noqa: S608  (the schema's own names)
        if number := max(max(reached) - min(reached), len(without_entry[table])):
            lost[table] = number
    return lost


def _count_reachable(db: sqlite3.Connection, sql: str) -> int:
    """Return how many rows come before the end, or before a page that cannot be read."""
    number = 0
    with suppress(sqlite3.DatabaseError):
        for _ in db.execute(sql):
            number += 1
    return number
