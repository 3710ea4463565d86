"""Texts embedded again, in one file or in several: all or none, whatever fails."""

import logging
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from memstory_reference.errors import InputError
from memstory_reference.ports import EmbedderUnavailableError
from memstory_reference.storage.reindexing import PARTS, EmbeddedFile, EmbeddedTable, reindex, text_in
from memstory_reference.storage.sql_database import Database

SCHEMA = "CREATE TABLE IF NOT EXISTS texts (number INTEGER PRIMARY KEY, text TEXT, vector BLOB)"
FILES = [
    EmbeddedFile(
        name="[ab].sqlite3",
        schema=SCHEMA,
        tables=[
            EmbeddedTable(
                select="SELECT number, text FROM texts",
                update="UPDATE texts SET vector = ? WHERE number = ?",
                text=text_in("text"),
            )
        ],
        afterwards=["DELETE FROM about WHERE name = 'sum'"],
    )
]


class Axes:
    """A model by which text n points along axis n; it fails at `fails_at`."""

    model, dimension = "axes", 40

    def __init__(self, fails_at=None):
        self._fails_at = fails_at

    async def embed(self, texts, _purpose):
        if self._fails_at in texts:
            raise EmbedderUnavailableError("the embedder is down; start it")
        return np.eye(40, dtype=np.float32)[[int(text) for text in texts]]


@pytest.fixture
def folder(tmp_path):
    for name, numbers in (("a", range(20)), ("b", range(20, 30))):
        about = {"model": "old", "dimension": "2", "sum": "1"}
        database = Database(tmp_path / f"{name}.sqlite3", schema=SCHEMA, about=about)
        database.executemany("INSERT INTO texts VALUES (?, ?, x'00')", [(one, str(one)) for one in numbers])
        database.close()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "of.f32").touch()
    return tmp_path


def contents(folder):
    found = {}
    for file in sorted(folder.glob("*.sqlite3")):
        with closing(sqlite3.connect(file)) as rows:
            found |= dict(rows.execute("SELECT number, vector FROM texts"))
            found[file.stem] = dict(rows.execute("SELECT name, value FROM about"))
    return found


async def test_every_file_has_the_vectors_of_the_other_model_and_nothing_that_followed_from_the_old(folder):
    assert await reindex(folder, FILES, ["copy"], Axes()) == 30
    found = contents(folder)
    assert found["a"] == found["b"] == {"model": "axes", "dimension": "40"}
    assert [np.frombuffer(found[one], np.float32).argmax() for one in range(30)] == [*range(30)]
    assert sorted(one.name for one in folder.iterdir()) == ["a.sqlite3", "b.sqlite3"]


@pytest.mark.parametrize("fails_at", ["3", "27"])
async def test_a_model_that_fails_leaves_all_files_as_they_were(folder, fails_at):
    before = contents(folder)
    with pytest.raises(EmbedderUnavailableError):
        await reindex(folder, FILES, ["copy"], Axes(fails_at))
    assert contents(folder) == before
    assert (folder / "copy").exists()
    assert not (folder / PARTS).exists()
    assert await reindex(folder, FILES, ["copy"], Axes()) == 30


async def test_a_row_that_is_no_text_keeps_what_it_has_and_is_named(folder, caplog):
    with closing(sqlite3.connect(folder / "a.sqlite3")) as rows, rows:
        rows.execute("UPDATE texts SET text = CAST(x'66ff' AS TEXT) WHERE number = 4")
    caplog.set_level(logging.ERROR)
    assert await reindex(folder, FILES, [], Axes()) == 29
    assert contents(folder)[4] == b"\0"
    assert "a.sqlite3: row 4 is damaged" in caplog.text


async def test_a_folder_without_such_files_is_refused(tmp_path):
    with pytest.raises(InputError, match="open it once with the model that made it"):
        await reindex(tmp_path, FILES, [], Axes())
