import shutil
import sqlite3
from contextlib import closing

import pytest

from memstory.contract.errors import SetupError
from memstory_reference.adapters.store_folder import LOCK_NAME, FolderLock, copy_folder
from memstory_reference.errors import InputError, StoreConflictError


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "store"
    (folder / "index").mkdir(parents=True)
    (folder / "index" / "data_level0.bin").write_bytes(b"vectors")
    with closing(sqlite3.connect(folder / "rows.sqlite3")) as rows, rows:
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("CREATE TABLE rows (text TEXT)")
    return folder


def texts(file):
    with closing(sqlite3.connect(file)) as rows:
        return [text for (text,) in rows.execute("SELECT text FROM rows")]


def test_an_open_store_is_copied_as_it_was_after_its_latest_write(folder, tmp_path):
    with FolderLock(folder), closing(sqlite3.connect(folder / "rows.sqlite3", isolation_level=None)) as writer:
        writer.execute("INSERT INTO rows VALUES ('written')")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO rows VALUES ('not yet')")
        assert (folder / "rows.sqlite3-wal").stat().st_size
        copy_folder(folder, tmp_path / "backup")
        writer.execute("COMMIT")
    assert texts(tmp_path / "backup" / "rows.sqlite3") == ["written"]
    assert (tmp_path / "backup" / "index" / "data_level0.bin").read_bytes() == b"vectors"
    assert sorted(one.name for one in (tmp_path / "backup").iterdir()) == ["index", "rows.sqlite3"]
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700


def test_what_is_made_again_is_left_out(folder, tmp_path):
    copy_folder(folder, tmp_path / "backup", derived=["index"])
    assert [one.name for one in (tmp_path / "backup").iterdir()] == ["rows.sqlite3"]


def test_files_of_another_library_are_copied_only_while_nobody_has_them(folder, tmp_path):
    with FolderLock(folder), pytest.raises(StoreConflictError, match="in use"):
        copy_folder(folder, tmp_path / "backup", foreign=["index"])
    assert not (tmp_path / "backup").exists()
    copy_folder(folder, tmp_path / "backup", foreign=["index"])
    assert not (tmp_path / "backup" / LOCK_NAME).exists()
    with FolderLock(folder):
        pass


def test_an_older_backup_is_not_overwritten(folder, tmp_path):
    with pytest.raises(InputError, match="there already"):
        copy_folder(folder, tmp_path)


def test_a_copy_that_fails_leaves_nothing_that_looks_like_one(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "copyfile", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(SetupError, match="no room"):
        copy_folder(folder, tmp_path / "backup")
    assert [one.name for one in tmp_path.iterdir()] == ["store"]


def test_what_is_not_there_cannot_be_copied(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        copy_folder(tmp_path / "nowhere", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_holds_no_copy_says_so(folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="cannot hold a copy"):
        copy_folder(folder, tmp_path / "file" / "backup")
