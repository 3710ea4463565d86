"""What a declared table gives a store, on both engines."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.postgres.postgres_database import open_postgres_database
from memstory_reference.storage.postgres.tables import postgres_tables
from memstory_reference.storage.sql_database import AT_ONCE, Database
from memstory_reference.storage.table import Column, Table


@dataclass(frozen=True, kw_only=True)
class Note:
    id: str
    said: str
    at: datetime
    weight: float | None = None
    kind: str = "note"


NOTES = Table(
    name="notes",
    columns={
        "row": Column("INTEGER PRIMARY KEY"),
        "owner": Column("TEXT NOT NULL"),
        "id": Column("TEXT NOT NULL"),
        "text": Column("TEXT NOT NULL", field="said"),
        "at": Column("TEXT NOT NULL", datetime.fromisoformat, datetime.isoformat),
        "weight": Column("REAL"),
        "vector": Column("BLOB"),
        "checksum": Column("TEXT"),
    },
    keys="UNIQUE (owner, id)",
    indexes="CREATE INDEX IF NOT EXISTS by_time ON notes (owner, at);",
    kind=Note,
    fixed={"kind": "row"},
    sealed=("owner", "id", "text", "at"),
    called="note {}",
    advice="Forget it",
)
MOMENT = datetime(2026, 5, 8, 12, 30, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request, tmp_path):
    if request.param == "sqlite":
        opened = Database(tmp_path / "it.sqlite3", schema=NOTES.schema)
    else:
        place = PostgresPlace(url=request.getfixturevalue("postgres_database"), schema="notes")
        opened = await open_postgres_database(place, [postgres_tables(NOTES.schema)], memory="notes", model="one")
    yield opened
    await opened.aclose()


def note(identifier, said="Bees hum.", **more):
    return Note(id=identifier, said=said, at=MOMENT, kind="row", **more)


def put(database, *notes, owner="ann"):
    NOTES.insert(database, [NOTES.values(one, owner=owner, vector=b"1234") for one in notes])


def test_a_value_comes_back_as_it_was_written_in_the_order_that_is_asked_for(database):
    put(database, note("a", weight=0.5), note("b"))
    put(database, note("b", "Wasps sting."), owner="bob")
    assert NOTES.get(database, "ann", ["b", "gone", "a", "b"]) == [note("b"), note("a", weight=0.5)]
    assert list(NOTES.read(database, "bob", "AND text LIKE ?", ["Wasps%"])) == [note("b", "Wasps sting.")]


def test_rows_are_counted_and_found_among_more_values_than_a_statement_takes(database):
    put(database, *(note(f"n{number}") for number in range(3)))
    wanted = [f"n{number}" for number in range(AT_ONCE + 2)]
    found = NOTES.rows(database, "ann", "AND weight IS NULL ORDER BY id", among=("id", wanted), columns="id")
    assert [row["id"] for row in found] == ["n0", "n1", "n2"]
    assert (NOTES.count(database, "ann"), NOTES.count(database, "ann", "AND id > 'n0'")) == (3, 2)
    assert NOTES.count(database, "bob") == 0


def test_what_is_there_already_stays_as_it_is(database):
    first, again = (NOTES.values(note("a", said), owner="ann", vector=b"") for said in ("first", "again"))
    assert NOTES.add(database, first, "id")["id"] == "a"
    assert NOTES.add(database, again, "id") is None
    assert NOTES.get(database, "ann", ["a"]) == [note("a", "first")]


def test_nothing_to_insert_is_no_statement(database):
    put(database)
    assert NOTES.count(database, "ann") == 0


@pytest.mark.parametrize(
    "damage", ["text = 'Bees bum.'", "id = 'b'", "at = 'noon'", "checksum = 'other'"], ids=lambda sql: sql.split()[0]
)
def test_a_row_that_was_changed_is_left_out_and_said_once(database, damage, caplog):
    put(database, note("a"), note("c"))
    database.execute(f"UPDATE notes SET {damage} WHERE id = 'a'")  # noqa: S608
    for _ in range(2):
        assert list(NOTES.read(database, "ann")) == [note("c")]
    (said,) = caplog.messages
    assert f"note {'b' if 'id =' in damage else 'a'} is damaged" in said
    assert said.endswith("Forget it")


def test_a_row_from_before_there_were_checksums_is_read(database):
    put(database, note("a"))
    database.execute("UPDATE notes SET checksum = NULL")
    assert NOTES.get(database, "ann", ["a"]) == [note("a")]


def test_a_row_that_lacks_a_checksum_that_every_row_has_is_damage(database):
    put(database, note("a"))
    database.execute("UPDATE notes SET checksum = NULL")
    always = replace(NOTES, columns={**NOTES.columns, "checksum": Column("TEXT NOT NULL")})
    assert always.get(database, "ann", ["a"]) == []


@pytest.mark.parametrize("is_sealed", [True, False], ids=["changed", "from before"])
def test_a_text_that_no_reader_takes_is_damage(database, is_sealed):
    nested = replace(NOTES, columns={**NOTES.columns, "text": Column("TEXT NOT NULL", json.loads, field="said")})
    put(database, note("a"), note("b", '"Bees."'))
    seal = "checksum" if is_sealed else "NULL"
    database.execute(f"UPDATE notes SET text = ?, checksum = {seal} WHERE id = 'a'", ("[" * 100_000,))  # noqa: S608
    assert list(nested.read(database, "ann")) == [note("b", "Bees.")]


@pytest.mark.parametrize(("column", "value"), [("text", b"\xff"), ("weight", "much")], ids=["text", "number"])
def test_a_value_of_another_type_is_damage(column, value, tmp_path):
    database = Database(tmp_path / "it.sqlite3", schema=NOTES.schema)
    put(database, note("a"), note("b"))
    database.execute(f"UPDATE notes SET {column} = ?, checksum = NULL WHERE id = 'a'", (value,))  # noqa: S608
    assert list(NOTES.read(database, "ann")) == [note("b")]
    database.close()
