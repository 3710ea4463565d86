"""A schema whose vectors were in pgvector, and whose texts were bytes, becomes one of today's tables."""

import json

import numpy as np
import psycopg
import pytest

from memstory_reference.composition.vector_stores import open_exact_schema
from memstory_reference.ports import Record
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.tables import parts_of

SCHEMA_1 = f"""
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
CREATE SCHEMA old;
SET LOCAL search_path = old, public;
CREATE TABLE about (name text PRIMARY KEY, value text NOT NULL);
INSERT INTO about VALUES ('schema', '1'), ('memory', 'topics and manager'), ('model', 'fixed'), ('dimension', '3');
CREATE TABLE owners (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key bytea NOT NULL UNIQUE, collection text NOT NULL,
    name bytea NOT NULL
);
CREATE TABLE rows (
    owner int NOT NULL, key bytea NOT NULL, id bytea NOT NULL, text bytea NOT NULL, metadata text[] NOT NULL,
    vector vector NOT NULL
);
ALTER TABLE rows RENAME TO rows_whole;
CREATE TABLE rows (LIKE rows_whole INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY HASH (owner);
{parts_of("rows")}
DROP TABLE rows_whole;
ALTER TABLE rows ADD PRIMARY KEY (owner, key);
"""  # noqa: S608  (constants)
PUT_OWNER = "INSERT INTO owners (key, collection, name) VALUES (%s, 'memory', %s) RETURNING number"
PUT = "INSERT INTO rows VALUES (%s, %s, %s, %s, %s, %s::vector)"
VECTORS = np.array([[1, 0, 0], [0.6, 0.8, 0], [-0.1, 0.7, -0.2]], np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
ROWS = [
    Record(id="a\0\1", text="\0\1 0\x010 Zażółć 小虎 \\000", metadata={"kind": "fact", "who": "Zoë \0\1", "n": 2**60}),
    Record(id="b", text="", metadata={}),
    Record(id="{}", text="'quoted' \"twice\" %s", metadata={"x, y": True, "half": 0.5, "minus": -1, '"a", \\ "': ']"'}),
]


def pairs(metadata):
    return [json.dumps(pair, ensure_ascii=False) for pair in metadata.items()]


@pytest.fixture
def old(postgres_database):
    with psycopg.connect(postgres_database) as connection:
        connection.execute("DROP SCHEMA IF EXISTS old CASCADE")
        connection.execute(SCHEMA_1)
        for owner in ("zoë\0", "bob"):
            (number,) = connection.execute(PUT_OWNER, (owner.encode(), owner.encode())).fetchone()
            for row, vector in zip(ROWS, VECTORS, strict=True):
                values = (number, row.id.encode(), row.id.encode(), row.text.encode(), pairs(row.metadata))
                connection.execute(PUT, (*values, str(vector.tolist())))
    return PostgresPlace(url=postgres_database, schema="old")


async def test_a_schema_with_pgvector_is_taken_over_with_all_its_rows_vectors_and_owners(old, caplog):
    store = await open_exact_schema(old, model="fixed", dimension=3)
    assert "the schema 'old': taken over from an earlier version of memstory (1, now 2)" in caplog.text
    assert list(await store.owners("memory")) == ["bob", "zoë\0"]
    for owner in ("bob", "zoë\0"):
        index = await store.index("memory", owner)
        assert list(await index.list()) == ROWS
        assert list(await index.list({"who": "Zoë \0\1"})) == ROWS[:1]
        for row, vector in zip(ROWS, VECTORS, strict=True):
            best = (await index.query(vector, 1))[0]
            assert (best.record, best.similarity) == (row, 1.0)
    await index.upsert([Record(id="b", text="new", vector=VECTORS[2])])
    await (await store.index("memory", "ann")).upsert([Record(id="c", text="", vector=VECTORS[0])])
    assert list(await store.owners("memory")) == ["ann", "bob", "zoë\0"]
    assert [one.text for one in await index.get(["b"])] == ["new"]
    assert await index.count() == len(ROWS)
    await store.close()
