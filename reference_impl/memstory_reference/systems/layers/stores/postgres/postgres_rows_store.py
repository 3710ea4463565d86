"""The layers in Postgres: the tables, and what is read of the records. Vectors are compared exactly, owner by owner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from memstory_reference.storage.postgres.connections_store import Connection, vector_of
from memstory_reference.storage.postgres.schema_store import partition_by_owner
from memstory_reference.storage.vector_matrix import VectorMatrix
from memstory_reference.systems.layers.identity import microseconds
from memstory_reference.systems.layers.records.record import Layer, MemoryRecord, Standing, content_of
from memstory_reference.systems.layers.stores.postgres.held_vectors import Version
from memstory_reference.systems.layers.stores.postgres.postings_store import rows_with_tokens
from memstory_reference.systems.layers.stores.store import ScoredRow, best_by_tokens

# Vectors are apart and never out of line: a search reads them packed, and no contents between them. There is no HNSW:
# it looks through everybody's rows first, and may leave few of an owner's. JSON is text: jsonb refuses an escaped NUL.
MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE owners (
        number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,
        next_row int NOT NULL DEFAULT 0
    );
    CREATE TABLE records (
        owner int NOT NULL,
        row int NOT NULL,
        id text COLLATE "C" NOT NULL,
        layer text COLLATE "C" NOT NULL,
        content text NOT NULL,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        session text,
        count int NOT NULL,
        standing text COLLATE "C" NOT NULL,
        superseded_by text,
        PRIMARY KEY (owner, id),
        UNIQUE (owner, row)
    );
    CREATE INDEX by_age ON records (owner, layer, standing, created_at DESC, id);
    CREATE TABLE vectors (
        owner int NOT NULL,
        row int NOT NULL,
        layer text COLLATE "C" NOT NULL,
        active boolean NOT NULL,
        created_at timestamptz NOT NULL,
        id text COLLATE "C" NOT NULL,
        vector vector NOT NULL,
        PRIMARY KEY (owner, row)
    );
    ALTER TABLE vectors ALTER vector SET STORAGE MAIN;
    CREATE INDEX by_owner ON vectors (owner, layer) WHERE active;
    CREATE TABLE postings (
        owner int NOT NULL,
        layer text COLLATE "C" NOT NULL,
        token text COLLATE "C" NOT NULL,
        part int NOT NULL,
        bits bit(256) NOT NULL,
        PRIMARY KEY (owner, layer, token, part)
    );
    CREATE TABLE sessions (
        owner text COLLATE "C" NOT NULL,
        session text COLLATE "C" NOT NULL,
        started_at timestamptz NOT NULL,
        last_at timestamptz NOT NULL,
        data text NOT NULL,
        PRIMARY KEY (owner, session)
    );
    """,
    """
    CREATE TABLE turns (
        owner text COLLATE "C" NOT NULL,
        session text COLLATE "C" NOT NULL,
        number int NOT NULL,
        extracted boolean NOT NULL,
        data text NOT NULL,
        PRIMARY KEY (owner, session, number)
    );
    """,
    'CREATE TABLE recall_off (owner text COLLATE "C" PRIMARY KEY);',
    # Processes that hold an owner's vectors in memory see from it that somebody has written.
    "ALTER TABLE owners ADD version int NOT NULL DEFAULT 0;",
    f"""
    {partition_by_owner("records", "PRIMARY KEY (owner, id)", "UNIQUE (owner, row)")}
    CREATE INDEX by_age ON records (owner, layer, standing, created_at DESC, id);
    {partition_by_owner("vectors", "PRIMARY KEY (owner, row)")}
    CREATE INDEX by_owner ON vectors (owner, layer) WHERE active;
    {partition_by_owner("postings", "PRIMARY KEY (owner, layer, token, part)")}
    """,
)

COLUMNS = "r.id, r.layer, r.content, r.created_at, r.updated_at, r.session, r.count, r.standing, r.superseded_by"
FROM = "FROM records AS r"


def storable_ids(ids: Sequence[str]) -> list[str]:
    """Return the distinct ids without those that no text of Postgres can be: nothing has them."""
    return [one for one in dict.fromkeys(ids) if _is_text(one)]


async def get_rows(connection: Connection, owner: str, ids: Sequence[str]) -> list[MemoryRecord]:
    """Return the rows that exist, in the order of `ids`."""
    wanted = storable_ids(ids)
    found = await _records(
        connection,
        f"SELECT {COLUMNS} {FROM} WHERE owner = %(owner)s AND id = ANY(%(ids)s)",
        owner,
        ids=wanted,
    )
    by_id = {one.id: one for one in found}
    return [by_id[one] for one in wanted if one in by_id]


async def list_rows(
    connection: Connection, owner: str, layers: Sequence[Layer], standings: Sequence[Standing], limit: int | None
) -> list[MemoryRecord]:
    """Return rows, newest first, ties by id."""
    return await _records(
        connection,
        f"SELECT {COLUMNS} {FROM} WHERE owner = %(owner)s AND layer = ANY(%(layers)s) "
        "AND standing = ANY(%(standings)s) ORDER BY created_at DESC, id LIMIT %(limit)s",
        owner,
        layers=_words(layers),
        standings=_words(standings),
        limit=limit,
    )


async def owner_number(connection: Connection, owner: str) -> int | None:
    """Return the number that an owner's rows have; None of one that has nothing.

    Statements get it as a value: a planner that has to look it up itself looks at the partitions of all owners.
    """
    cursor = await connection.execute("SELECT number FROM owners WHERE name = %s", (owner,))
    return next((int(number) for (number,) in await cursor.fetchall()), None)


async def version(connection: Connection, owner: str) -> Version | None:
    """Return which owner this is and how often somebody has written for it; None of one that has nothing."""
    cursor = await connection.execute("SELECT number, version FROM owners WHERE name = %s", (owner,))
    return await cursor.fetchone()


async def vectors(connection: Connection, owner: int, layer: Layer) -> tuple[Version | None, VectorMatrix]:
    """Return the active vectors of a layer of the owner with this number, as they are at a version."""
    matrix, at = VectorMatrix(), None
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(
            "SELECT o.number, o.version, v.id, v.created_at, v.vector FROM owners AS o "
            "LEFT JOIN vectors AS v ON v.owner = %(owner)s AND v.layer = %(layer)s AND v.active "
            "WHERE o.number = %(owner)s",
            {"owner": owner, "layer": str(layer)},
        )
        for number, count, identifier, created_at, sent in await cursor.fetchall():
            at = (number, count)
            if identifier is not None:
                matrix.put(identifier, vector_of(sent), microseconds(created_at))
    return at, matrix


async def rows_by_tokens(
    connection: Connection, owner: str, layer: Layer, tokens: AbstractSet[str], *, limit: int, since: datetime | None
) -> list[ScoredRow]:
    """Return the active rows by their share of `tokens`."""
    number = await owner_number(connection, owner)
    numbers, held = await rows_with_tokens(connection, number, layer, tokens)
    if not len(numbers):
        return []
    # With a date it is not known yet which rows count.
    numbers, held = best_by_tokens(numbers, held, limit if since is None else None)
    cursor = await connection.execute(
        f"SELECT row, id, created_at {FROM} WHERE owner = %(owner)s AND row = ANY(%(rows)s) "
        "AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s) ORDER BY created_at DESC, id",
        {"owner": number, "rows": numbers.tolist(), "since": since},
    )
    share = dict(zip(numbers.tolist(), (held / len(tokens)).tolist(), strict=True))
    found = [
        ScoredRow(id=name, moment=microseconds(at), score=share[number]) for number, name, at in await cursor.fetchall()
    ]
    return sorted(found, key=lambda one: -one.score)[:limit]


async def count_rows(connection: Connection, owner: str) -> Mapping[tuple[Layer, Standing], int]:
    """Count an owner's rows."""
    cursor = await connection.execute(
        f"SELECT layer, standing, count(*) {FROM} WHERE owner = %(owner)s GROUP BY 1, 2",
        {"owner": await owner_number(connection, owner)},
    )
    return {(Layer(layer), Standing(standing)): count for layer, standing, count in await cursor.fetchall()}


async def rows_without_vector(connection: Connection, owner: str, limit: int) -> list[MemoryRecord]:
    """Return active rows that have no vector, oldest first."""
    return await _records(
        connection,
        f"SELECT {COLUMNS} {FROM} LEFT JOIN vectors AS v USING (owner, row) WHERE r.owner = %(owner)s "
        "AND r.standing = 'active' AND v.row IS NULL ORDER BY r.created_at, r.id LIMIT %(limit)s",
        owner,
        limit=limit,
    )


async def set_recall(connection: Connection, owner: str, *, on: bool) -> None:
    """Keep whether an owner's memory is read."""
    insert = "INSERT INTO recall_off VALUES (%s) ON CONFLICT DO NOTHING"
    await connection.execute("DELETE FROM recall_off WHERE owner = %s" if on else insert, (owner,))


async def is_recall_on(connection: Connection, owner: str) -> bool:
    """Say whether an owner's memory is read."""
    cursor = await connection.execute("SELECT 1 FROM recall_off WHERE owner = %s", (owner,))
    return await cursor.fetchone() is None


async def _records(connection: Connection, query: str, owner: str, **values: object) -> list[MemoryRecord]:
    """Return the records of a query that knows the owner's number as `owner`."""
    cursor = await connection.execute(query, {"owner": await owner_number(connection, owner), **values})
    return [record_of(owner, *row) for row in await cursor.fetchall()]


def record_of(  # noqa: PLR0917  (the columns, as COLUMNS has them)
    owner: str,
    identifier: str,
    layer: str,
    content: str,
    created_at: datetime,
    updated_at: datetime,
    session: str | None,
    count: int,
    standing: str,
    superseded_by: str | None,
) -> MemoryRecord:
    """Return a record of its columns."""
    return MemoryRecord(
        id=identifier,
        owner=owner,
        content=content_of(Layer(layer), json.loads(content)),
        created_at=created_at,
        updated_at=updated_at,
        session=session,
        count=count,
        standing=Standing(standing),
        superseded_by=superseded_by,
    )


def _words(values: Sequence[str]) -> list[str]:
    return [str(value) for value in values]


def _is_text(one: str) -> bool:
    try:
        return "\0" not in one and bool(one.encode("utf-8"))
    except UnicodeEncodeError:
        return False
