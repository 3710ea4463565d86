from contextlib import suppress

import pytest

from memstory_reference.errors import StoreConflictError, UnavailableError
from memstory_reference.systems.pipeline.stores.database_store import Database


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "new" / "pipeline.sqlite3", model="one")
    yield database
    database.close()


def test_a_file_of_another_model_is_refused_and_can_be_opened_with_its_own(tmp_path):
    Database(tmp_path / "it", model="one").close()
    with pytest.raises(StoreConflictError, match="made with model 'one', not 'two': open it with 'one'"):
        Database(tmp_path / "it", model="two")
    Database(tmp_path / "it", model="one").close()


def test_a_file_that_is_no_database_is_said_to_be_unusable(tmp_path):
    (tmp_path / "it").write_bytes(b"no database at all" * 100)
    with pytest.raises(UnavailableError, match="it cannot be used: file is not a database"):
        Database(tmp_path / "it", model="one")


def test_what_fails_in_a_transaction_leaves_nothing(database):
    with suppress(RuntimeError), database.transaction():
        database.execute("INSERT INTO about VALUES ('a', 'b')")
        raise RuntimeError
    assert database.execute("SELECT count(*) FROM about WHERE name = 'a'").fetchone()[0] == 0
    with database.transaction():
        database.execute("INSERT INTO about VALUES ('a', 'b')")
    assert database.execute("SELECT count(*) FROM about WHERE name = 'a'").fetchone()[0] == 1


def test_a_full_disk_is_said_and_loses_nothing_that_was_written(database):
    database.execute("INSERT INTO about VALUES ('kept', 'x')")
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")

    def fill():
        with database.transaction():
            for number in range(1_000):
                database.execute("INSERT INTO about VALUES (?, ?)", (f"big {number}", "x" * 5_000))

    with pytest.raises(UnavailableError, match="disk is full"):
        fill()
    assert database.execute("SELECT count(*) FROM about WHERE name <> 'schema' AND name <> 'model'").fetchone()[0] == 1
