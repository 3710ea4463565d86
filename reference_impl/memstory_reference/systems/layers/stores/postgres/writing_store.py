"""Writes the layers to Postgres: a batch in one transaction, what is new by COPY, what changes in one pipeline.

A writer locks the owner's row first, so that what was read before writing is still true.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memstory_reference.storage.postgres.connections_store import Connection
from memstory_reference.storage.vector_matrix import normalized_or_none
from memstory_reference.systems.layers.identity import microseconds
from memstory_reference.systems.layers.records.record import MemoryRecord, content_data, text_of
from memstory_reference.systems.layers.stores.postgres.held_vectors import Place, Step, Version
from memstory_reference.systems.layers.stores.postgres.postgres_rows_store import COLUMNS, FROM, record_of, storable_ids
from memstory_reference.systems.layers.stores.postgres.postings_store import index, unindex
from memstory_reference.systems.layers.stores.postgres.sessions_store import remove_session


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A record by its owner and number; `vector` is what is written now, `old` what the row was, if it was there."""

    owner: int
    number: int
    record: MemoryRecord
    vector: NDArray[np.float32] | None
    old: MemoryRecord | None = None

    @property
    def is_same_text(self) -> bool:
        return self.old is not None and text_of(self.old.content) == text_of(self.record.content)

    @property
    def is_indexed_alike(self) -> bool:
        """Whether the index of tokens need not change: most writes only count how often something was said."""
        old, new = self.old, self.record
        if old is None or not self.is_same_text:
            return False
        return (old.layer, old.created_at, old.is_active) == (new.layer, new.created_at, new.is_active)


async def put_records(connection: Connection, records: Sequence[MemoryRecord]) -> list[Step]:
    """Write rows in a transaction; all of them have been read before anything is written."""
    # Under one id the later wins, but may keep the vector of the earlier: such go one after the other.
    every, written = list(records), list[_Row]()
    if not every:
        return []
    async with connection.transaction():
        versions = await _lock(connection, {record.owner for record in every})
        owners = {name: number for name, (number, _) in versions.items()}
        for run in _without_repetition(every):
            written += await _put(connection, owners, run)
    return [_step(owner, version, written) for owner, version in versions.items()]


async def end_session(
    connection: Connection, owner: str, session: str, records: Sequence[MemoryRecord]
) -> list[Step] | None:
    """Take an active session off and write what it leaves, in one transaction; None if it is not active."""
    async with connection.transaction():
        return await put_records(connection, records) if await remove_session(connection, owner, session) else None


async def delete_records(connection: Connection, owner: str, ids: Sequence[str]) -> tuple[list[str], list[Step]]:
    """Delete rows with their index; return the ids that existed, in the order of `ids`."""
    wanted = storable_ids(ids)
    async with connection.transaction():
        versions = await _lock_known(connection, [owner])
        if owner not in versions:
            return [], []
        number, _ = versions[owner]
        old = await _old(connection, number, owner, wanted)
        rows = [row for row, _ in old.values()]
        for table in ("records", "vectors"):
            await connection.execute(f"DELETE FROM {table} WHERE owner = %s AND row = ANY(%s)", (number, rows))  # noqa: S608  (two names)
        await unindex(connection, ((number, row, record) for row, record in old.values() if record.is_active))
    gone = {one: Place(layer=record.layer, moment=0, vector=None) for one, (_, record) in old.items()}
    return [one for one in wanted if one in old], [Step(owner=owner, version=versions[owner], places=gone)]


async def delete_owner(connection: Connection, owner: str) -> int:
    """Delete all rows of an owner and the owner's name; return how many rows there were."""
    async with connection.transaction():
        number, _ = (await _lock_known(connection, [owner])).get(owner, (None, 0))
        gone = await connection.execute("DELETE FROM records WHERE owner = %s", (number,))
        for table in ("vectors", "postings"):
            await connection.execute(f"DELETE FROM {table} WHERE owner = %s", (number,))  # noqa: S608  (two names)
        await connection.execute("DELETE FROM owners WHERE number = %s", (number,))
        await connection.execute("DELETE FROM recall_off WHERE owner = %s", (owner,))
    return gone.rowcount


def _step(owner: str, version: Version, written: Sequence[_Row]) -> Step:
    places = dict[str, Place]()
    for row in written:
        one = row.record
        if one.owner != owner or (row.vector is None and row.is_indexed_alike):
            continue
        if row.vector is None and row.is_same_text and one.is_active:
            # It keeps a vector that only the table has.
            return Step(owner=owner, version=version, places=None)
        vector = row.vector if one.is_active else None
        places[one.id] = Place(layer=one.layer, moment=microseconds(one.created_at), vector=vector)
    return Step(owner=owner, version=version, places=places)


async def _put(connection: Connection, owners: Mapping[str, int], records: Sequence[MemoryRecord]) -> list[_Row]:
    rows = await _number_rows(connection, owners, records)
    await _write_records(connection, rows)
    await _write_vectors(connection, rows)
    changed = [row for row in rows if not row.is_indexed_alike]
    await unindex(connection, ((row.owner, row.number, row.old) for row in changed if row.old and row.old.is_active))
    await index(connection, ((row.owner, row.number, row.record) for row in changed if row.record.is_active))
    return rows


async def _lock(connection: Connection, names: set[str]) -> dict[str, Version]:
    """Return the owners' next versions, locked until the transaction ends; in one order, against deadlocks."""
    while True:
        known = await _lock_known(connection, sorted(names))
        missing = sorted(names - known.keys())
        if not missing:
            return known
        # Another process may make or forget one of them meanwhile: look again.
        await connection.execute(
            "INSERT INTO owners (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (missing,)
        )


async def _lock_known(connection: Connection, names: Sequence[str]) -> dict[str, Version]:
    cursor = await connection.execute(
        "UPDATE owners AS o SET version = o.version + 1 FROM "
        "(SELECT number FROM owners WHERE name = ANY(%s) ORDER BY number FOR UPDATE) AS known "
        "WHERE o.number = known.number RETURNING o.name, o.number, o.version",
        (names,),
    )
    return {str(name): (int(number), int(version)) for name, number, version in await cursor.fetchall()}


async def _number_rows(
    connection: Connection, owners: Mapping[str, int], records: Sequence[MemoryRecord]
) -> list[_Row]:
    rows: list[_Row] = []
    by_owner: dict[str, list[MemoryRecord]] = {}
    for record in records:
        by_owner.setdefault(record.owner, []).append(record)
    for name, own in by_owner.items():
        owner = owners[name]
        old = await _old(connection, owner, name, [record.id for record in own])
        number = await _next_row(connection, owner, len(own) - len(old))
        for record in own:
            vector = normalized_or_none(record.vector)
            if record.id in old:
                known, before = old[record.id]
                rows.append(_Row(owner=owner, number=known, record=record, vector=vector, old=before))
            else:
                rows.append(_Row(owner=owner, number=number, record=record, vector=vector))
                number += 1
    return rows


async def _old(
    connection: Connection, owner: int, name: str, ids: Sequence[str]
) -> dict[str, tuple[int, MemoryRecord]]:
    cursor = await connection.execute(
        f"SELECT r.row, {COLUMNS} {FROM} WHERE r.owner = %s AND r.id = ANY(%s)", (owner, list(ids))
    )
    found = [(int(row), record_of(name, *columns)) for row, *columns in await cursor.fetchall()]
    return {record.id: (row, record) for row, record in found}


async def _next_row(connection: Connection, owner: int, count: int) -> int:
    """Return the first of `count` numbers that no row of the owner has had."""
    cursor = await connection.execute(
        "UPDATE owners SET next_row = next_row + %s WHERE number = %s RETURNING next_row", (count, owner)
    )
    ((after,),) = await cursor.fetchall()
    return int(after) - count


async def _write_records(connection: Connection, rows: Sequence[_Row]) -> None:
    columns = "owner, row, id, layer, content, created_at, updated_at, session, count, standing, superseded_by"
    fresh = [row for row in rows if row.old is None]
    async with connection.cursor() as cursor:
        if fresh:
            async with cursor.copy(f"COPY records ({columns}) FROM STDIN") as copy:
                for row in fresh:
                    await copy.write_row((row.owner, row.number, row.record.id, *_values(row.record)))
        await cursor.executemany(
            "UPDATE records SET layer = %s, content = %s, created_at = %s, updated_at = %s, session = %s, count = %s, "
            "standing = %s, superseded_by = %s WHERE owner = %s AND row = %s",
            [(*_values(row.record), row.owner, row.number) for row in rows if row.old is not None],
        )


def _values(record: MemoryRecord) -> tuple[object, ...]:
    return (
        str(record.layer),
        json.dumps(content_data(record.content)),
        record.created_at,
        record.updated_at,
        record.session,
        record.count,
        str(record.standing),
        record.superseded_by,
    )


async def _write_vectors(connection: Connection, rows: Sequence[_Row]) -> None:
    stale = [row for row in rows if row.old is not None and (row.vector is not None or not row.is_same_text)]
    kept = [row for row in rows if row.vector is None and row.is_same_text and not row.is_indexed_alike]
    fresh = [row for row in rows if row.vector is not None]
    async with connection.cursor() as cursor:
        await cursor.executemany(
            "DELETE FROM vectors WHERE owner = %s AND row = %s", [(row.owner, row.number) for row in stale]
        )
        await cursor.executemany(
            "UPDATE vectors SET layer = %s, active = %s, created_at = %s WHERE owner = %s AND row = %s",
            [
                (str(row.record.layer), row.record.is_active, row.record.created_at, row.owner, row.number)
                for row in kept
            ],
        )
        if fresh:
            columns = "owner, row, layer, active, created_at, id, vector"
            async with cursor.copy(f"COPY vectors ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(["int4", "int4", "text", "bool", "timestamptz", "text", "vector"])
                for row in fresh:
                    one = row.record
                    where = (row.owner, row.number, str(one.layer), one.is_active, one.created_at, one.id)
                    await copy.write_row((*where, row.vector))


def _without_repetition(records: Sequence[MemoryRecord]) -> Iterator[list[MemoryRecord]]:
    """Split a batch where an id comes again."""
    run: dict[tuple[str, str], MemoryRecord] = {}
    for record in records:
        if (record.owner, record.id) in run:
            yield list(run.values())
            run = {}
        run[record.owner, record.id] = record
    yield list(run.values())
