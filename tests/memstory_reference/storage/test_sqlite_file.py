import sqlite3
from contextlib import closing, suppress

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import StoreConflictError
from memstory_reference.storage.sql_database import Database, batches_of_values

SCHEMA = "CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, text TEXT)"


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "new" / "it.sqlite3", schema=SCHEMA)
    yield database
    database.close()


def opened(file, model):
    return Database(file, schema=SCHEMA, about={"schema": "1", "model": model})


def names(database):
    return [name for (name,) in database.execute("SELECT name FROM notes ORDER BY name")]


def test_a_file_of_another_model_is_refused_and_can_be_opened_with_its_own(tmp_path):
    opened(tmp_path / "it", "one").close()
    with pytest.raises(StoreConflictError, match="made with model 'one', not 'two': open it with 'one'"):
        opened(tmp_path / "it", "two")
    opened(tmp_path / "it", "one").close()


MIGRATIONS = {"1": "ALTER TABLE notes ADD COLUMN made TEXT; UPDATE notes SET made = 'before'"}


def migrated(file, migrations=MIGRATIONS, model="one"):
    return Database(file, schema="", about={"schema": "3", "model": model}, migrations=migrations)


def test_a_file_of_an_earlier_schema_is_taken_over_once_with_a_line_that_says_so(tmp_path, caplog):
    opened(tmp_path / "it", "one").execute("INSERT INTO notes VALUES ('a', 'b')")
    for _ in range(2):
        database = migrated(tmp_path / "it")
        assert [tuple(row) for row in database.execute("SELECT * FROM notes")] == [("a", "b", "before")]
        assert database.execute("SELECT value FROM about WHERE name = 'schema'").fetchone()[0] == "3"
        database.close()
    assert (
        caplog.text.count(f"{tmp_path / 'it'}: taken over from an earlier version of memstory (schema 1, now 3)") == 1
    )


def test_a_takeover_that_fails_changes_nothing(tmp_path):
    opened(tmp_path / "it", "one").close()
    with pytest.raises(UnavailableError, match="no such table: nowhere"):
        migrated(tmp_path / "it", {"1": "; ".join((MIGRATIONS["1"], "INSERT INTO nowhere VALUES (1)"))})
    assert names(opened(tmp_path / "it", "one")) == []


def test_a_file_is_made_whole_or_not_at_all(tmp_path):
    with pytest.raises(UnavailableError, match="no such table: nowhere"):
        Database(tmp_path / "it", schema=f"{SCHEMA}; DROP TABLE nowhere", about={"schema": "1"})
    with closing(sqlite3.connect(tmp_path / "it")) as left:
        assert left.execute("SELECT name FROM sqlite_master").fetchall() == []


@pytest.mark.parametrize("found", ["4", "0", "x"])
def test_a_schema_that_this_version_does_not_read_is_refused(tmp_path, found):
    database = opened(tmp_path / "it", "one")
    database.execute("UPDATE about SET value = ? WHERE name = 'schema'", (found,))
    database.close()
    with pytest.raises(StoreConflictError, match=f"has schema '{found}'; this version of memstory reads 1, 3"):
        migrated(tmp_path / "it")


def test_a_file_of_another_model_is_refused_before_it_is_changed(tmp_path):
    opened(tmp_path / "it", "one").close()
    with pytest.raises(StoreConflictError, match="model"):
        migrated(tmp_path / "it", model="two")
    opened(tmp_path / "it", "one").close()


def test_a_file_that_is_no_database_is_said_to_be_unusable(tmp_path):
    (tmp_path / "it").write_bytes(b"no database at all" * 100)
    with pytest.raises(UnavailableError, match="it cannot be used: file is not a database"):
        opened(tmp_path / "it", "one")


def test_what_fails_in_a_transaction_leaves_nothing(database):
    with suppress(RuntimeError), database.transaction():
        database.execute("INSERT INTO notes VALUES ('a', 'b')")
        raise RuntimeError
    assert names(database) == []
    with database.transaction():
        database.execute("INSERT INTO notes VALUES ('a', 'b')")
    assert names(database) == ["a"]


def test_a_full_disk_is_said_and_loses_nothing_that_was_written(database):
    database.execute("INSERT INTO notes VALUES ('kept', 'x')")
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")

    def fill():
        with database.transaction():
            for number in range(1_000):
                database.execute("INSERT INTO notes VALUES (?, ?)", (f"big {number}", "x" * 5_000))

    with pytest.raises(UnavailableError, match="disk is full"):
        fill()
    assert names(database) == ["kept"]


def test_deleted_text_is_in_neither_file_once_the_log_begins_anew(tmp_path, database):
    def held():
        return any(b"a secret of mine" in file.read_bytes() for file in (tmp_path / "new").iterdir())

    database.execute("INSERT INTO notes VALUES ('a', 'a secret of mine')")
    assert held()
    database.execute("DELETE FROM notes")
    database.forget_log()
    assert not held()


async def test_a_closed_file_is_unavailable(database):
    await database.aclose()
    await database.aclose()
    with pytest.raises(UnavailableError, match=r"it\.sqlite3 was closed; open it again"):
        await database.lane.run(names, database)


def test_values_are_asked_for_once_and_in_parts(monkeypatch):
    monkeypatch.setattr("memstory_reference.storage.sql_database.AT_ONCE", 2)
    assert list(batches_of_values(["a", "b", "a", "c"])) == [("?, ?", ["a", "b"]), ("?", ["c"])]


ROWS, PAGE = 30, 4096


@pytest.fixture
def file(tmp_path):
    """A file of 30 rows on one page, with an index by their texts, that was closed."""
    database = Database(tmp_path / "it", schema=f"{SCHEMA}; CREATE INDEX IF NOT EXISTS by_text ON notes (text)")
    with database.transaction():
        for number in range(ROWS):
            database.execute("INSERT INTO notes VALUES (?, ?)", (f"{number:02}", f"text {number}"))
    database.close()
    return tmp_path / "it"


def lose_rows_of_the_table(file):
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'notes'").fetchone()
    content = bytearray(file.read_bytes())
    cells = (page - 1) * PAGE + 3
    content[cells : cells + 2] = (ROWS - 2).to_bytes(2)
    file.write_bytes(content)


def lose_rows_of_the_index(file):
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        kept = connection.execute("SELECT * FROM sqlite_master WHERE name = 'by_text'").fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("DELETE FROM sqlite_master WHERE name = 'by_text'")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("INSERT INTO notes VALUES ('x', 'new')")
        connection.execute("INSERT INTO notes VALUES ('y', 'newer')")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)


@pytest.mark.parametrize("lose", [lose_rows_of_the_table, lose_rows_of_the_index])
def test_a_file_that_lost_rows_says_so_when_it_is_opened_and_how_many(file, caplog, lose):
    lose(file)
    database = Database(file, schema=SCHEMA)
    assert database.count_lost("notes") == 2
    assert database.count_lost("about") == 0
    database.close()
    (said,) = caplog.messages
    assert str(file) in said
    assert "2 rows of notes" in said
    assert "Restore a backup" in said


def test_a_whole_file_has_lost_nothing_and_is_opened_without_a_word(file, caplog):
    database = Database(file, schema=SCHEMA)
    assert database.count_lost("notes") == 0
    database.close()
    assert caplog.messages == []


def test_of_large_files_only_those_that_were_not_closed_are_checked(file, tmp_path, monkeypatch):
    monkeypatch.setattr("memstory_reference.storage.sql_database.CHECKED_BYTES", PAGE)
    lose_rows_of_the_table(file)
    database = Database(file, schema=SCHEMA)
    assert database.count_lost("notes") == 0
    database.execute("INSERT INTO about VALUES ('x', 'y')")
    for left in ("it", "it-wal"):
        (tmp_path / f"copied-{left}").write_bytes((tmp_path / left).read_bytes())
    database.close()
    copied = Database(tmp_path / "copied-it", schema=SCHEMA)
    assert copied.count_lost("notes") == 2
    copied.close()


def test_what_is_said_of_a_text_that_is_no_utf_8_repeats_none_of_it(database):
    database.execute("INSERT INTO notes VALUES ('a', CAST(x'736563726574ff' AS TEXT)), ('b', 'fine')")
    with pytest.raises(UnavailableError, match="UTF-8") as error, database._translate_errors():
        database.execute("SELECT text FROM notes").fetchall()
    assert "secret" not in str(error.value)
    assert [tuple(row) for row in database.rows("SELECT text FROM notes")] == [(b"secret\xff",), ("fine",)]


def test_rows_come_in_batches_and_each_once_where_one_in_the_middle_is_no_utf_8(database):
    for number in range(5):
        database.execute("INSERT INTO notes VALUES (?, ?)", (number, f"text {number}"))
    database.execute("UPDATE notes SET text = CAST(x'ff' AS TEXT) WHERE name = '3'")
    batches = [[row["text"] for row in part] for part in database.batches("SELECT text FROM notes", size=2)]
    assert batches == [["text 0", "text 1"], ["text 2", b"\xff"], ["text 4"]]


def test_a_row_that_lacks_a_column_is_the_files_fault_and_no_bug(database):
    database.execute("INSERT INTO notes VALUES ('a', 'b')")
    with pytest.raises(UnavailableError, match=r"it\.sqlite3 cannot be used: .*column"), database._translate_errors():
        database.execute("SELECT * FROM notes").fetchone()["words"]
