"""A table of owners' rows, declared once: what makes it, what is written, and what a row that is whole holds.

A store asks the questions that are its own; `postgres.tables` says a schema in the words of Postgres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import NoneType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from memstory_reference.storage.sql_database import SqlDatabase, SqlRow, batches_of_values, checksum


class _Named(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Named)

_HELD: Mapping[str, frozenset[type]] = {
    "TEXT": frozenset({str}),
    "INTEGER": frozenset({int}),
    "REAL": frozenset({float, int}),
    "BLOB": frozenset({bytes}),
}


class Column(NamedTuple):
    """Its type, in the words of SQLite, how a value is read and written if not as it is, and the field that has it.

    A field has the name of its column unless another is given.
    """

    sql: str
    read: Callable[[Any], object] | None = None
    write: Callable[[Any], object] | None = None
    field: str = ""

    @property
    def types(self) -> frozenset[type]:
        """Of what types a stored value may be."""
        kind, _, more = self.sql.partition(" ")
        return _HELD[kind] if more.startswith(("NOT NULL", "PRIMARY KEY")) else _HELD[kind] | {NoneType}


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Generic[T]):
    """Rows of owners, each with an id. Of a column that no field of `kind` has, a store takes care.

    `keys` and `indexes` are SQL. `fixed` are fields that are the same in all rows. The column `seal` has a `digest` of
    the columns that are `sealed`, if any, as they are stored; a row from before there were seals has none. `called` is
    what a message calls a row, by its id, and `advice` what it says of a damaged one.
    """

    name: str
    columns: Mapping[str, Column]
    keys: str = ""
    indexes: str = ""
    kind: type[T]
    fixed: Mapping[str, object] = field(default_factory=dict)
    seal: str = "checksum"
    sealed: Sequence[str] = ()
    digest: Callable[[Sequence[Any]], object] = checksum
    called: str
    advice: str

    @property
    def schema(self) -> str:
        """The statements that make it."""
        columns = [f"{name} {column.sql}" for name, column in self.columns.items()]
        inner = ",\n    ".join([*columns, self.keys] if self.keys else columns)
        return f"CREATE TABLE IF NOT EXISTS {self.name} (\n    {inner}\n);\n{self.indexes}"

    def values(self, value: T, **others: object) -> dict[str, Any]:
        """Return a row by its columns: the fields of a value, the `others`, and the seal."""
        row = others
        for name, at, column, _ in self._fields:
            held = getattr(value, at)
            row[name] = held if column.write is None else column.write(held)
        if self.sealed:
            row[self.seal] = self.digest([row[name] for name in self.sealed])
        return row

    def insert(self, database: SqlDatabase, rows: Sequence[Mapping[str, object]]) -> None:
        """Write new rows, which have the same columns."""
        if rows:
            database.insert(self.name, ", ".join(rows[0]), [list(row.values()) for row in rows])

    def add(self, database: SqlDatabase, row: Mapping[str, object], returning: str = "id") -> SqlRow | None:
        """Write a row unless there is one of its id; return a column of what was written."""
        marks = ", ".join("?" * len(row))
        into = f"INSERT INTO {self.name} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608
        # All of them: what is read to its end is written.
        written = database.execute(
            f"{into} ON CONFLICT DO NOTHING RETURNING {returning}", list(row.values())
        ).fetchall()
        return written[0] if written else None

    def value(self, row: SqlRow) -> T:
        """Return what a row holds; ValueError or TypeError for one that was changed outside memstory."""
        if self.sealed:
            # Before anything is read: of what somebody else wrote, nobody knows what a reader makes.
            self._check_seal(row)
        held = dict(self.fixed)
        for name, at, column, types in self._fields:
            stored = row[name]
            if column.read is not None:
                stored = column.read(stored)
            elif type(stored) not in types:
                raise TypeError(f"{type(stored).__name__} is no type of {name}")
            held[at] = stored
        return self.kind(**held)

    def _check_seal(self, row: SqlRow) -> None:
        seal = row[self.seal]
        is_from_before = seal is None and NoneType in self.columns[self.seal].types
        if not is_from_before and seal != self.digest([row[name] for name in self.sealed]):
            raise ValueError("its checksum does not fit")

    def whole(self, database: SqlDatabase, rows: Iterable[SqlRow]) -> Iterator[T]:
        """Yield what rows hold; a damaged one is left out, and logged once."""
        for row in rows:
            try:
                yield self.value(row)
            # A text may be so nested that JSON cannot be read.
            except (TypeError, ValueError, AttributeError, RecursionError) as problem:
                database.leave_out(self.called.format(row["id"]), problem, self.advice, (row["owner"], row["id"]))

    def rows(
        self,
        database: SqlDatabase,
        owner: str,
        where: str = "",
        values: Sequence[object] = (),
        *,
        among: tuple[str, Sequence[object]] | None = None,
        columns: str = "",
    ) -> list[SqlRow]:
        """Return an owner's rows where `where` adds AND or ORDER; without `columns`, those that `value` needs.

        `among` names a column, and the values that it may have: any number of them.
        """
        sql = f"SELECT {columns or self.read_columns} FROM {self.name} WHERE owner = ?"  # noqa: S608
        if among is None:
            return list(database.rows(f"{sql} {where}", (owner, *values)))
        column, wanted = among
        return [
            row
            for marks, part in batches_of_values(wanted)
            for row in database.rows(f"{sql} AND {column} IN ({marks}) {where}", (owner, *part, *values))
        ]

    def read(
        self,
        database: SqlDatabase,
        owner: str,
        where: str = "",
        values: Sequence[object] = (),
        *,
        among: tuple[str, Sequence[object]] | None = None,
    ) -> Iterator[T]:
        """Yield what `rows` hold that are whole."""
        return self.whole(database, self.rows(database, owner, where, values, among=among))

    def get(self, database: SqlDatabase, owner: str, ids: Sequence[str]) -> list[T]:
        """Return what the rows of these ids hold, of those that exist, in the order of `ids`."""
        found = {one.id: one for one in self.read(database, owner, among=("id", ids))}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def count(self, database: SqlDatabase, owner: str, where: str = "") -> int:
        """Count the rows of an owner."""
        (row,) = self.rows(database, owner, where, columns="count(*)")
        return int(row[0])

    @cached_property
    def read_columns(self) -> str:
        """The columns of which `value` makes what a row holds, and those that tell it from others."""
        sealing = (*self.sealed, self.seal) if self.sealed else ()
        return ", ".join(dict.fromkeys([*(name for name, *_ in self._fields), "owner", *sealing]))

    @cached_property
    def _fields(self) -> list[tuple[str, str, Column, frozenset[type]]]:
        """The columns that fields have: name, field, what it is, and the types that it may have."""
        every = {one.name for one in fields(self.kind)}  # type: ignore[arg-type]
        named = [(name, column.field or name, column) for name, column in self.columns.items()]
        return [(name, at, column, column.types) for name, at, column in named if at in every]
