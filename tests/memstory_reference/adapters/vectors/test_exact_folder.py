import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.adapters.store_folder import LOCK_NAME
from memstory_reference.adapters.vectors.exact_store import FILE, open_exact_folder
from memstory_reference.errors import StoreConflictError


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def other_owner(tmp_path):
    code = "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); print(flush=True); input()"
    command = [sys.executable, "-c", code, tmp_path / LOCK_NAME]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603  (our own)
        process.stdout.readline()
        yield process
        process.kill()


async def test_rows_outlive_the_store(tmp_path, filled, spread):
    store, _ = await filled(tmp_path / "deep" / "store")
    await store.close()
    store = open_exact_folder(tmp_path / "deep" / "store", model="fixed")
    index = await store.index("memory", "ana")
    assert await index.count() == 30
    assert (await index.query(spread(30)[7], 1))[0].record.id == "r0007"
    assert store.dimension == 8
    await store.close()


async def test_folder_copied_while_closed_is_a_backup(tmp_path, filled):
    store, _ = await filled(tmp_path / "one", 300)
    await store.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copies = [open_exact_folder(tmp_path / name, model="fixed") for name in ("one", "two")]
    first, second = [list(await (await store.index("memory", "ana")).list()) for store in copies]
    assert first == second != []
    for store in copies:
        await store.close()


async def test_second_store_in_one_process_is_refused_until_the_first_is_closed(tmp_path, filled):
    store, _ = await filled(tmp_path)
    with pytest.raises(StoreConflictError, match=f"{tmp_path} is in use by another process"):
        open_exact_folder(tmp_path, model="fixed")
    await store.close()
    await (open_exact_folder(tmp_path, model="fixed")).close()


async def test_folder_of_another_process_is_refused(tmp_path, other_owner):
    with pytest.raises(StoreConflictError, match="Close that one, or choose another folder"):
        open_exact_folder(tmp_path, model="fixed")
    other_owner.kill()
    other_owner.wait()
    await (open_exact_folder(tmp_path, model="fixed")).close()


async def test_file_in_place_of_the_folder_is_one_clear_error(tmp_path):
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(SetupError, match=r"cannot hold a store: .*Give a folder that this user may write to"):
        open_exact_folder(tmp_path / "store", model="fixed")


async def test_folder_that_nobody_can_write_to_is_one_clear_error(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    folder = closed if os.geteuid() else Path("/sys/kernel")  # root may write to all but the kernel's own
    with pytest.raises(SetupError, match="cannot hold a store"):
        open_exact_folder(folder, model="fixed")


async def test_file_that_is_no_database_is_one_clear_error_and_the_lock_is_released(tmp_path, filled):
    (tmp_path / FILE).write_bytes(b"junk" * 4_000)
    with pytest.raises(UnavailableError, match="not a database"):
        open_exact_folder(tmp_path, model="fixed")
    (tmp_path / FILE).unlink()
    store, index = await filled(tmp_path)
    assert await index.count() == 30
    await store.close()


async def test_store_of_another_model_is_refused_and_stays_as_it_was(tmp_path, filled):
    #
    store, _ = await filled(tmp_path)
    await store.close()
    with pytest.raises(StoreConflictError, match=r"made with the model 'fixed' \(8 numbers .* this run has 'other'"):
        open_exact_folder(tmp_path, model="other")
    with pytest.raises(StoreConflictError, match="this run has 'fixed' \\(384 numbers\\)"):
        open_exact_folder(tmp_path, model="fixed", dimension=384)
    store = open_exact_folder(tmp_path, model="fixed", dimension=8)
    assert await (await store.index("memory", "ana")).count() == 30
    await store.close()


async def test_new_owner_cannot_bring_another_dimension_into_the_store(tmp_path, filled, rows_of, spread):
    store, _ = await filled(tmp_path)
    other = await store.index("memory", "bob")
    with pytest.raises(StoreConflictError, match="holds vectors of 8"):
        await other.upsert(rows_of(spread(1, dimension=4)))
    assert list(await store.owners("memory")) == ["ana"]
    await store.close()


async def test_fifty_reopenings_leak_no_descriptors(tmp_path, filled, spread):
    store, _ = await filled(tmp_path)
    await store.close()
    before = descriptors()
    for _ in range(50):
        store = open_exact_folder(tmp_path, model="fixed")
        await (await store.index("memory", "ana")).query(spread(1)[0], 1)
        await store.close()
    assert descriptors() <= before + 10


async def test_folder_removed_after_close_gives_an_empty_store(tmp_path, filled):
    store, _ = await filled(tmp_path / "store")
    await store.close()
    shutil.rmtree(tmp_path / "store")
    store = open_exact_folder(tmp_path / "store", model="another")
    assert list(await store.owners("memory")) == []
    await store.close()


async def test_an_index_that_an_earlier_version_kept_beside_the_rows_is_deleted(tmp_path, filled):
    store, _ = await filled(tmp_path)
    await store.close()
    for name in ("chroma", "chroma.stale"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chroma.sqlite3").write_bytes(b"a forgotten text")
    store = open_exact_folder(tmp_path, model="fixed")
    assert [one.name for one in tmp_path.iterdir() if one.is_dir()] == []
    assert await (await store.index("memory", "ana")).count() == 30
    await store.close()
