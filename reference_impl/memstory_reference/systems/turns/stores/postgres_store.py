"""Turns in Postgres: the store that several processes and machines share. Vectors are searched exactly, by pgvector.

A writer holds the owner's row until the end of the transaction, so that numbers give the order of adding, and who
deletes finds all words of a turn. Tables are partitioned by owner, so every statement has the owner's number: a planner
that does not know it looks at all partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import dict_row
from psycopg.sql import SQL

from memstory_reference.errors import OtherModelError, StoreConflictError
from memstory_reference.storage.postgres.connections_store import Connection, Connections, postgres_errors, vector_of
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.schema_store import MEMORY, open_schema, partition_by_owner
from memstory_reference.storage.vector_matrix import cosines
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.ranking.pool import (
    K1,
    NOBODY,
    B,
    Pool,
    empty_pool,
    rarity,
    rows_of,
    with_neighbours,
)
from memstory_reference.systems.turns.stores.store import IndexedTurn, latest_of
from memstory_reference.systems.turns.stores.turn_rows import (
    COLUMNS,
    WRITTEN_COLUMNS,
    features_of,
    turn_of,
    values_of,
)
from memstory_reference.systems.turns.turn import STEMS, Turn

CALLS_AT_ONCE = 8
SLOWEST_PACE = 200
"""Turns a second, below which a batch counts as hanging."""

MIGRATIONS: Sequence[str] = (
    """
    CREATE TABLE owners (
        number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE
    );
    CREATE TABLE turns (
        owner int NOT NULL REFERENCES owners (number) ON DELETE CASCADE,
        number int GENERATED ALWAYS AS IDENTITY,
        id text COLLATE "C" NOT NULL,
        key text COLLATE "C",
        kind text NOT NULL,
        speaker text,
        session text COLLATE "C",
        said_at text,
        noted_at text NOT NULL,
        text text NOT NULL,
        metadata text NOT NULL,
        stems text NOT NULL,
        words int NOT NULL,
        vector vector NOT NULL,
        PRIMARY KEY (owner, id),
        UNIQUE (owner, number),
        UNIQUE (owner, key)
    );
    CREATE INDEX by_session ON turns (owner, session, number);
    CREATE TABLE postings (
        owner int NOT NULL,
        stem text COLLATE "C" NOT NULL,
        number int NOT NULL,
        times int NOT NULL,
        words int NOT NULL,
        PRIMARY KEY (owner, stem, number),
        FOREIGN KEY (owner, number) REFERENCES turns (owner, number) ON DELETE CASCADE
    );
    CREATE INDEX by_turn ON postings (owner, number);
    """,
    # Of a turn only its first words are looked for.
    f"""
    DELETE FROM postings WHERE words > {STEMS};
    UPDATE turns SET stems = array_to_string((string_to_array(stems, ' '))[:{STEMS}], ' '), words = {STEMS}
        WHERE words > {STEMS};
    INSERT INTO postings SELECT owner, stem, number, count(*), {STEMS}
        FROM turns, unnest(string_to_array(stems, ' ')) AS stem
        WHERE words = {STEMS} GROUP BY owner, number, stem ON CONFLICT DO NOTHING;
    """,  # noqa: S608
    # Numbers are the owner's own from here on: one sequence for all would have to be asked wherever its rows lie.
    f"""
    ALTER TABLE owners ADD last_number int NOT NULL DEFAULT 0;
    UPDATE owners SET last_number = coalesce((SELECT max(number) FROM turns WHERE owner = owners.number), 0);
    {partition_by_owner("postings", "PRIMARY KEY (owner, stem, number)")}
    CREATE INDEX by_turn ON postings (owner, number);
    {partition_by_owner("turns", "PRIMARY KEY (owner, id)", "UNIQUE (owner, number)", "UNIQUE (owner, key)")}
    CREATE INDEX by_session ON turns (owner, session, number);
    """,  # noqa: S608
)
_ALL = (*WRITTEN_COLUMNS, "stems", "words", "vector")
_UPDATE = f"UPDATE turns SET ({', '.join(_ALL)}) = ({', '.join(['%s'] * len(_ALL))}) WHERE owner = %s AND number = %s"  # noqa: S608
_FREE = """
    UPDATE turns SET key = NULL FROM unnest(%s::text[], %s::text[]) AS u (key, id)
    WHERE owner = %s AND turns.key = u.key AND turns.id <> u.id
"""
_COPY_TURNS = f"COPY turns (owner, number, {', '.join(_ALL)}) FROM STDIN (FORMAT BINARY)"
_TURN_TYPES = ("int4", "int4", *["text"] * (len(_ALL) - 2), "int4", "vector")
_COPY_POSTINGS = "COPY postings (owner, stem, number, times, words) FROM STDIN (FORMAT BINARY)"
_POSTING_TYPES = ("int4", "text", "int4", "int4", "int4")
_WORDED = """
    SELECT p.number FROM postings AS p JOIN unnest(%(stems)s::text[], %(rarity)s::float8[]) AS u (stem, rarity)
        ON p.stem = u.stem
    WHERE p.owner = %(owner)s AND (%(among)s::int[] IS NULL OR p.number = ANY (%(among)s))
    GROUP BY p.number
    ORDER BY sum(u.rarity * p.times / (p.times + %(k1)s * (1 - %(b)s + %(b)s * p.words / %(mean)s))) DESC, p.number
    LIMIT %(size)s
"""
_NEAREST = """
    SELECT number FROM turns WHERE owner = %(owner)s AND (%(among)s::int[] IS NULL OR number = ANY (%(among)s))
    ORDER BY vector <=> %(vector)s, number LIMIT %(size)s
"""
_GIVE_NUMBERS = """
    INSERT INTO owners AS o (name, last_number) VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET last_number = o.last_number + excluded.last_number RETURNING number, last_number
"""
_COUNTED = "SELECT count(*) AS turns, coalesce(avg(words), 0) AS mean FROM turns WHERE owner = %s"
_DIMENSION = "SELECT vector_dims(vector) AS dimension FROM turns WHERE owner = %s LIMIT 1"
_HOLDING = "SELECT stem, count(*) AS turns FROM postings WHERE owner = %s AND stem = ANY (%s) GROUP BY stem"
_CANDIDATES = f"""
    SELECT {COLUMNS}, stems, vector FROM turns
    WHERE owner = %s AND number = ANY (%s) ORDER BY number
"""  # noqa: S608
_BESIDE = """
    SELECT number, before, after FROM (
        SELECT number, lag(number) OVER w AS before, lead(number) OVER w AS after FROM turns
        WHERE owner = %(owner)s AND speaker IS NOT NULL AND session = ANY (
            SELECT session FROM turns WHERE owner = %(owner)s AND number = ANY (%(numbers)s) AND speaker IS NOT NULL
        )
        WINDOW w AS (PARTITION BY session ORDER BY number)
    ) AS neighbours
"""


class PostgresTurns:
    """A `TurnsStore` in its own schema, open."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, owner: str, written: Sequence[IndexedTurn]) -> None:
        if written:
            async with self._connected(len(written) / SLOWEST_PACE) as connection:
                await _put(connection, owner, latest_of(written))

    async def get(self, owner: str, ids: Sequence[str]) -> list[Turn]:
        found = {turn.id: turn for turn in (await self._read(owner, "id = ANY (%s)", list(ids))).values()}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    async def by_numbers(self, owner: str, numbers: Sequence[int]) -> dict[int, Turn]:
        return await self._read(owner, "number = ANY (%s)", list(numbers))

    async def by_keys(self, owner: str, keys: Sequence[str]) -> dict[str, Turn]:
        found = await self._read(owner, "key = ANY (%s)", list(keys))
        return {turn.key: turn for turn in found.values() if turn.key is not None}

    async def list_turns(self, owner: str, conditions: Conditions, limit: int | None = None) -> list[Turn]:
        found = list((await self._meeting(owner, conditions)).values())
        return found if limit is None else found[max(len(found) - limit, 0) :]

    async def pool(
        self, owner: str, vector: NDArray[np.float32], stems: Sequence[str], size: int, conditions: Conditions
    ) -> Pool:
        among = None if conditions.is_open else list(await self._meeting(owner, conditions))
        async with self._connected() as connection, connection.transaction():
            # All its statements see the same rows, whatever others delete meanwhile.
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return await _pool(connection, owner, vector, list(stems), size=size, among=among)

    async def speakers(self, owner: str) -> Collection[str]:
        sql = "SELECT DISTINCT speaker FROM turns WHERE owner = %s AND speaker IS NOT NULL"
        return {row["speaker"] for row in await self._rows(sql, owner)}

    async def delete(self, owner: str, ids: Sequence[str]) -> list[str]:
        async with self._connected() as connection:
            gone = await _delete(connection, owner, "id = ANY (%s)", list(ids))
        return [one for one in dict.fromkeys(ids) if one in gone]

    async def forget_session(self, owner: str, session: str) -> int:
        async with self._connected() as connection:
            return len(await _delete(connection, owner, "session = %s", session))

    async def forget_owner(self, owner: str) -> int:
        async with self._connected() as connection:
            return await _forget_owner(connection, owner)

    async def owners(self) -> list[str]:
        sql = "SELECT name FROM owners WHERE EXISTS (SELECT FROM turns WHERE owner = owners.number)"
        async with self._connected() as connection:
            return sorted(row["name"] for row in await _fetch(connection, sql, ()))

    async def count(self, owner: str) -> int:
        rows = await self._rows("SELECT count(*) AS turns FROM turns WHERE owner = %s", owner)
        return int(rows[0]["turns"])

    async def unreadable(self, owner: str) -> int:
        return 0  # the server's own checksums find a damaged page, and it refuses to read it

    async def close(self) -> None:
        await self._connections.close()

    async def _meeting(self, owner: str, conditions: Conditions) -> dict[int, Turn]:
        """Return the turns that meet the conditions, by number."""
        sessions = [] if conditions.session is None else [conditions.session]
        found = await self._read(owner, "session = %s" if sessions else "true", *sessions)
        return {number: turn for number, turn in found.items() if conditions.admits(turn)}

    async def _read(self, owner: str, condition: str, *given: object) -> dict[int, Turn]:
        """Return the turns that meet a fixed condition, by number, in the order of adding."""
        sql = f"SELECT {COLUMNS} FROM turns WHERE owner = %s AND {condition} ORDER BY number"  # noqa: S608
        return {row["number"]: turn_of(row) for row in await self._rows(sql, owner, *given)}

    async def _rows(self, sql: str, owner: str, *given: object) -> list[dict[str, Any]]:
        """Return the rows of a statement whose first value is the owner's number."""
        async with self._connected() as connection:
            return await _fetch(connection, sql, (await _number(connection, owner), *given))

    @asynccontextmanager
    async def _connected(self, more_seconds: float = 0) -> AsyncIterator[Connection]:
        async with postgres_errors(more_seconds), self._connections.one() as connection:
            yield connection


async def open_postgres_turns(place: PostgresPlace, *, model: str) -> PostgresTurns:
    """Open the store in `place`, whose schema is made or brought up to date.

    Raises:
        SetupError: the server refuses the URL's user or database, or has no pgvector.
        StoreConflictError: its vectors are of another model, or a newer program made it.
        UnavailableError: nobody answers.
    """
    connections = Connections(place, size=CALLS_AT_ONCE)
    fresh = {MEMORY: "turns", "model": model}
    about = await open_schema(connections, place, MIGRATIONS, fresh, with_vectors=[connections])
    if about["model"] != model:
        await connections.close()
        raise OtherModelError(
            f"the schema {place.schema!r} was made with the model {about['model']!r}, not {model!r}: use that model, "
            "or another schema",
            about["model"],
        )
    return PostgresTurns(connections)


async def _fetch(connection: Connection, sql: str, given: Sequence[Any] | Mapping[str, Any]) -> list[dict[str, Any]]:
    # In binary: as text, the vectors of one search take ten times as long to write and to read as all the rest of it.
    async with connection.cursor(row_factory=dict_row, binary=True) as cursor:
        await cursor.execute(SQL(sql), given)  # all statements are of this module
        return await cursor.fetchall()


async def _put(connection: Connection, owner: str, written: Sequence[IndexedTurn]) -> None:
    async with connection.transaction():
        (given,) = await _fetch(connection, _GIVE_NUMBERS, (owner, len(written)))
        number, last = given["number"], given["last_number"]
        await _check_dimension(connection, number, len(written[0].vector))
        keys = {one.turn.id: one.turn.key for one in written if one.turn.key is not None}
        if keys:
            await connection.execute(_FREE, (list(keys.values()), list(keys), number))
        sql = "SELECT id, number FROM turns WHERE owner = %s AND id = ANY (%s)"
        rows = await _fetch(connection, sql, [number, [one.turn.id for one in written]])
        known = {row["id"]: row["number"] for row in rows}
        new = [one.turn.id for one in written if one.turn.id not in known]
        numbers = known | dict(zip(new, count(last - len(written) + 1), strict=False))
        await _write(connection, number, [(numbers[one.turn.id], one) for one in written], replaced=set(known.values()))


async def _write(
    connection: Connection, owner: int, written: Sequence[tuple[int, IndexedTurn]], *, replaced: Collection[int]
) -> None:
    values = [
        (*values_of(one.turn), " ".join(one.stems), len(one.stems), np.asarray(one.vector, np.float32))
        for _, one in written
    ]
    rows = [(number, row) for (number, _), row in zip(written, values, strict=True)]
    postings = (
        (owner, stem, number, times, len(one.stems))
        for number, one in written
        for stem, times in Counter(one.stems).items()
    )
    async with connection.cursor() as cursor:
        await cursor.executemany(_UPDATE, [(*row, owner, number) for number, row in rows if number in replaced])
        await cursor.execute("DELETE FROM postings WHERE owner = %s AND number = ANY (%s)", (owner, list(replaced)))
        new = ((owner, number, *row) for number, row in rows if number not in replaced)
        for sql, types, copied in ((_COPY_TURNS, _TURN_TYPES, new), (_COPY_POSTINGS, _POSTING_TYPES, postings)):
            async with cursor.copy(sql) as copy:
                copy.set_types(types)
                for row in copied:
                    await copy.write_row(row)


async def _check_dimension(connection: Connection, owner: int, dimension: int) -> None:
    for held in await _fetch(connection, _DIMENSION, (owner,)):
        if held["dimension"] != dimension:
            raise StoreConflictError(
                f"the store holds vectors of {held['dimension']} numbers, this one has {dimension}: use the model that "
                "the store was made with, or another schema"
            )


async def _number(connection: Connection, owner: str, *, locked: bool = False) -> int | None:
    sql = "SELECT number FROM owners WHERE name = %s"
    found = await _fetch(connection, f"{sql} FOR UPDATE" if locked else sql, (owner,))
    return int(found[0]["number"]) if found else None


async def _delete(connection: Connection, owner: str, condition: str, value: object) -> list[str]:
    async with connection.transaction():
        number = await _number(connection, owner, locked=True)
        if number is None:
            return []
        sql = f"DELETE FROM turns WHERE owner = %s AND {condition} RETURNING id, number"  # noqa: S608  (two fixed conditions)
        gone = await _fetch(connection, sql, (number, value))
        sql = "DELETE FROM postings WHERE owner = %s AND number = ANY (%s)"
        await connection.execute(sql, (number, [row["number"] for row in gone]))
    return [row["id"] for row in gone]


async def _forget_owner(connection: Connection, owner: str) -> int:
    async with connection.transaction():
        number = await _number(connection, owner, locked=True)
        await connection.execute("DELETE FROM postings WHERE owner = %s", (number,))
        gone = await connection.execute("DELETE FROM turns WHERE owner = %s", (number,))
        await connection.execute("DELETE FROM owners WHERE number = %s", (number,))
    return gone.rowcount


async def _pool(
    connection: Connection,
    owner: str,
    vector: NDArray[np.float32],
    stems: list[str],
    *,
    size: int,
    among: list[int] | None,
) -> Pool:
    number = await _number(connection, owner)
    if number is None:
        return empty_pool()
    (counted,) = await _fetch(connection, _COUNTED, (number,))
    turns, mean = counted["turns"], float(counted["mean"])
    if not turns:
        return empty_pool()
    await _check_dimension(connection, number, len(vector))
    holding = {row["stem"]: row["turns"] for row in await _fetch(connection, _HOLDING, (number, stems))}
    given: dict[str, Any] = {"owner": number, "among": among, "size": size, "vector": vector, "k1": K1, "b": B}
    given |= {"stems": stems, "rarity": [rarity(holding.get(stem, 0), turns) for stem in stems], "mean": mean or 1.0}
    core = {row["number"] for sql in (_NEAREST, _WORDED) for row in await _fetch(connection, sql, given)}
    rows = await _fetch(connection, _BESIDE, {"owner": number, "numbers": list(core)})
    beside = {row["number"]: (row["before"], row["after"]) for row in rows}
    near = {other for one in core for other in beside.get(one, ()) if other is not None}
    allowed = None if among is None else set(among)
    numbers = sorted(core | (near if allowed is None else near & allowed))
    sides = [[NOBODY if one is None else one for one in beside.get(place, (None, None))] for place in numbers]
    before, after = np.array(sides, np.int64).reshape(-1, 2).T
    others = {other for side in sides for other in side if allowed is None or other in allowed}
    read = await _fetch(connection, _CANDIDATES, (number, sorted(others.union(numbers))))
    by_number = {row["number"]: vector_of(row["vector"]) for row in read}
    candidates = set(numbers)
    found_rows = [row for row in read if row["number"] in candidates]
    nowhere = np.zeros(len(vector), np.float32)
    vectors, earlier, later = (
        np.array([by_number.get(one, nowhere) for one in which], np.float32).reshape(-1, len(vector))
        for which in (numbers, before.tolist(), after.tolist())
    )
    features = [features_of(turn_of(row), row["number"], len(row["stems"].split())) for row in found_rows]
    named = {name: code for code, name in enumerate(sorted({one.speaker for one in features if one.speaker}))}
    sessions = {name: code for code, name in enumerate(sorted({one.session for one in features if one.session}))}
    times = [Counter(row["stems"].split()) for row in found_rows]
    places = np.array([one.number for one in features], np.int64)
    return Pool(
        numbers=places,
        before=rows_of(places, before),
        after=rows_of(places, after),
        sessions=np.array([sessions.get(one.session or "", NOBODY) for one in features], np.int64),
        speakers=np.array([named.get(one.speaker or "", NOBODY) for one in features], np.int64),
        named=named,
        moments=np.array([one.moment for one in features], np.int64),
        signs=np.array([one.signs for one in features], np.uint8),
        words=np.array([one.words for one in features], np.int64),
        cosines=cosines(vectors, vector),
        contexts=cosines(with_neighbours(vectors, earlier, later), vector),
        vectors=vectors,
        stems=tuple(stems),
        times=np.array([[one[stem] for one in times] for stem in stems], np.int64).reshape(len(stems), len(features)),
        holding=holding,
        turns=turns,
        mean_words=mean,
    )
