import pytest

from memstory.contract.errors import SetupError
from memstory_reference.adapters.folder_copy import copy_closed
from memstory_reference.adapters.folder_lock import LOCK_NAME, FolderLock
from memstory_reference.errors import InputError, StoreConflictError


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "store"
    (folder / "index").mkdir(parents=True)
    (folder / "chroma.sqlite3").write_bytes(b"rows")
    (folder / "index" / "data_level0.bin").write_bytes(b"vectors")
    return folder


def test_the_whole_folder_is_copied_but_not_who_owns_it(folder, tmp_path):
    copy = tmp_path / "backup"
    copy_closed(folder, copy)
    assert (copy / "chroma.sqlite3").read_bytes() == b"rows"
    assert (copy / "index" / "data_level0.bin").read_bytes() == b"vectors"
    assert not (copy / LOCK_NAME).exists()


def test_an_open_store_is_not_copied(folder, tmp_path):
    lock = FolderLock(folder)
    lock.acquire()
    try:
        with pytest.raises(StoreConflictError, match="in use"):
            copy_closed(folder, tmp_path / "backup")
    finally:
        lock.release()
    assert not (tmp_path / "backup").exists()


def test_the_store_can_be_opened_after_its_backup(folder, tmp_path):
    copy_closed(folder, tmp_path / "backup")
    lock = FolderLock(folder)
    lock.acquire()
    lock.release()


def test_an_older_backup_is_not_overwritten(folder, tmp_path):
    with pytest.raises(InputError, match="there already"):
        copy_closed(folder, tmp_path)


def test_what_is_not_there_cannot_be_copied(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        copy_closed(tmp_path / "nowhere", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_holds_no_copy_says_so(folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="cannot hold a copy"):
        copy_closed(folder, tmp_path / "file" / "backup")
