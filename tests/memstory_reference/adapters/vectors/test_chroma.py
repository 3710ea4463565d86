import logging
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.api.client import Client
from chromadb.config import Settings

from memstory_reference.adapters.folder_lock import LOCK_NAME
from memstory_reference.adapters.vectors import chroma_files, chroma_health, chroma_index
from memstory_reference.adapters.vectors.chroma import open_chroma, open_chroma_server
from memstory_reference.adapters.vectors.chroma_catalog import name_of
from memstory_reference.adapters.vectors.chroma_rows import ChromaRows
from memstory_reference.errors import InputError, SetupProblem, StoreConflictError, UnavailableError
from memstory_reference.ports import Record


def spread(count, dimension=8, seed=1):
    vectors = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rows_of(vectors, prefix="r", **metadata):
    return [
        Record(id=f"{prefix}{n:04}", text=f"text {n}", metadata=metadata, vector=vector)
        for n, vector in enumerate(vectors)
    ]


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def index_files(folder, name):
    return sorted(path for path in folder.glob(f"*/{name}") if not path.parent.name.startswith("damaged-"))


@pytest.fixture
def other_owner(tmp_path):
    code = "import filelock, sys; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); print(flush=True); input()"
    command = [sys.executable, "-c", code, tmp_path / LOCK_NAME]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:  # noqa: S603  (our own)
        process.stdout.readline()
        yield process
        process.kill()


async def filled(folder, count=30, *, sync_rows=1_000, exact_rows=5_000, owner="ana"):
    store = await open_chroma(folder, model="fixed", exact_rows=exact_rows)
    store._catalog.sync_rows = sync_rows
    index = await store.index("memory", owner)
    await index.upsert(rows_of(spread(count)))
    return store, index


async def test_rows_outlive_the_store(tmp_path):
    store, _ = await filled(tmp_path / "deep" / "store")
    await store.close()
    store = await open_chroma(tmp_path / "deep" / "store", model="fixed")
    index = await store.index("memory", "ana")
    assert await index.count() == 30
    assert (await index.query(spread(30)[7], 1))[0].record.id == "r0007"
    assert store.dimension == 8
    await store.close()


async def test_folder_copied_while_closed_is_a_backup(tmp_path):
    store, _ = await filled(tmp_path / "one", 300, sync_rows=20)
    await store.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copies = [await open_chroma(tmp_path / name, model="fixed") for name in ("one", "two")]
    first, second = [list(await (await store.index("memory", "ana")).list()) for store in copies]
    assert first == second != []
    for store in copies:
        await store.close()


async def test_second_store_in_one_process_is_refused_until_the_first_is_closed(tmp_path):
    store, _ = await filled(tmp_path)
    with pytest.raises(StoreConflictError, match=f"{tmp_path} is in use by another process"):
        await open_chroma(tmp_path, model="fixed")
    await store.close()
    await (await open_chroma(tmp_path, model="fixed")).close()


async def test_folder_of_another_process_is_refused(tmp_path, other_owner):
    with pytest.raises(StoreConflictError, match="Close that one, choose another folder"):
        await open_chroma(tmp_path, model="fixed")
    other_owner.kill()
    other_owner.wait()
    await (await open_chroma(tmp_path, model="fixed")).close()


async def test_file_in_place_of_the_folder_is_one_clear_error(tmp_path):
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(SetupProblem, match=r"cannot hold a store: .*Give a folder that this user may write to"):
        await open_chroma(tmp_path / "store", model="fixed")


async def test_folder_that_nobody_can_write_to_is_one_clear_error(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    folder = closed if os.geteuid() else Path("/sys/kernel")  # root may write to all but the kernel's own
    with pytest.raises(SetupProblem, match="cannot hold a store"):
        await open_chroma(folder, model="fixed")


async def test_file_that_is_no_database_is_one_clear_error_and_the_lock_is_released(tmp_path):
    (tmp_path / "chroma.sqlite3").write_bytes(b"junk" * 4_000)
    with pytest.raises(UnavailableError, match="not a database"):
        await open_chroma(tmp_path, model="fixed")
    (tmp_path / "chroma.sqlite3").unlink()
    store, index = await filled(tmp_path)
    assert await index.count() == 30
    await store.close()


async def test_store_of_another_model_is_refused_and_stays_as_it_was(tmp_path):
    #
    store, _ = await filled(tmp_path)
    await store.close()
    with pytest.raises(StoreConflictError, match=r"made with the model 'fixed' \(8 numbers .* this run has 'other'"):
        await open_chroma(tmp_path, model="other")
    with pytest.raises(StoreConflictError, match="this run has 'fixed' \\(384 numbers\\)"):
        await open_chroma(tmp_path, model="fixed", dimension=384)
    store = await open_chroma(tmp_path, model="fixed", dimension=8)
    assert await (await store.index("memory", "ana")).count() == 30
    await store.close()


async def test_new_owner_cannot_bring_another_dimension_into_the_store(tmp_path):
    store, _ = await filled(tmp_path)
    other = await store.index("memory", "bob")
    with pytest.raises(StoreConflictError, match="holds vectors of 8"):
        await other.upsert(rows_of(spread(1, dimension=4)))
    assert list(await store.owners("memory")) == ["ana"]
    await store.close()


async def test_collection_of_another_space_is_refused(tmp_path):
    # LF-11, X-3
    client = chromadb.PersistentClient(str(tmp_path), settings=Settings(anonymized_telemetry=False))
    client.create_collection(name_of("memory", "ana"), embedding_function=None)
    client.close()
    store = await open_chroma(tmp_path, model="fixed")
    with pytest.raises(StoreConflictError, match=r"made by something else .space 'l2', expected 'cosine'"):
        await store.index("memory", "ana")
    await store.close()


async def test_collections_of_other_programs_are_left_alone(tmp_path):
    client = chromadb.PersistentClient(str(tmp_path), settings=Settings(anonymized_telemetry=False))
    client.create_collection("theirs", metadata={"x": 1}, embedding_function=None)
    client.close()
    store, _ = await filled(tmp_path)
    assert list(await store.owners("memory")) == ["ana"]
    await store.close()


async def test_fifty_reopenings_leak_no_descriptors(tmp_path):
    store, _ = await filled(tmp_path)
    await store.close()
    before = descriptors()
    for _ in range(50):
        store = await open_chroma(tmp_path, model="fixed")
        await (await store.index("memory", "ana")).query(spread(1)[0], 1)
        await store.close()
    assert descriptors() <= before + 10  # Chroma's own threads let go a little later


async def test_folder_removed_after_close_gives_an_empty_store(tmp_path):
    store, _ = await filled(tmp_path / "store")
    await store.close()
    shutil.rmtree(tmp_path / "store")
    store = await open_chroma(tmp_path / "store", model="another")
    assert list(await store.owners("memory")) == []
    await store.close()


async def test_batches_are_cut_to_what_the_client_takes(tmp_path):
    store, index = await filled(tmp_path, 1)
    index._rows._batch = 7
    await index.upsert(rows_of(spread(100), prefix="many"))
    assert await index.count() == 101
    assert len(await index.get([f"many{n:04}" for n in range(100)])) == 100
    assert len(await index.delete([f"many{n:04}" for n in range(100)])) == 100
    await store.close()


@pytest.mark.slow
async def test_more_rows_than_a_batch_of_chroma_are_written_at_once(tmp_path):
    store, index = await filled(tmp_path, 12_000)
    assert await index.count() == 12_000
    assert len(await index.get([f"r{n:04}" for n in range(12_000)])) == 12_000
    await store.close()


async def test_small_index_is_searched_exactly_and_a_grown_one_by_chroma(tmp_path):
    store, index = await filled(tmp_path, 30, exact_rows=40)
    await index.query(spread(1)[0], 1)
    assert index.mirrored == 30
    await index.upsert(rows_of(spread(30, seed=2), prefix="s"))
    assert (await index.query(spread(30, seed=2)[3], 1))[0].record.id == "s0003"
    assert index.mirrored == 0
    await store.close()


async def test_longest_unused_mirror_gives_way(tmp_path):
    store = await open_chroma(tmp_path, model="fixed")
    store._mirrors._rows_in_all = 50
    indexes = [await store.index("memory", owner) for owner in ("ana", "bob", "cid")]
    for index in indexes:
        await index.upsert(rows_of(spread(20)))
        await index.query(spread(1)[0], 1)
    assert [index.mirrored for index in indexes] == [0, 20, 20]
    assert (await indexes[0].query(spread(20)[5], 1))[0].record.id == "r0005"
    await store.close()


async def test_write_that_fails_half_way_is_not_hidden_by_the_mirror(tmp_path, monkeypatch):
    store, index = await filled(tmp_path, 4)
    await index.query(spread(1)[0], 1)
    index._rows._batch = 2

    def broken(self, *, ids, **rest):
        if "n0002" in ids:
            raise chromadb.errors.InternalError("database or disk is full")
        return upsert(self, ids=ids, **rest)

    upsert = chromadb.Collection.upsert
    monkeypatch.setattr(chromadb.Collection, "upsert", broken)
    with pytest.raises(SetupProblem, match="disk is full"):
        await index.upsert(rows_of(spread(4, seed=3), prefix="n"))
    found = await index.query(spread(4, seed=3)[1], 1)
    assert (found[0].record.id, await index.count()) == ("n0001", 6)
    await store.close()


@pytest.mark.parametrize("name", chroma_files.FILES)
@pytest.mark.parametrize("damage", ["empty", "half", "gone"])
async def test_damaged_index_file_is_rebuilt_and_nothing_is_lost(tmp_path, caplog, name, damage):
    store, _ = await filled(tmp_path, 300, sync_rows=20)
    await store.close()
    (file,) = index_files(tmp_path, name)
    match damage:
        case "gone":
            file.unlink()
        case "empty":
            os.truncate(file, 0)
        case _:
            os.truncate(file, file.stat().st_size // 2)
    with caplog.at_level(logging.WARNING):
        store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    assert "the index files were damaged" in caplog.text
    index = await store.index("memory", "ana")
    assert await index.count() == 300
    assert chroma_health.unreachable(index._rows, index._rows.select({})) == []
    assert (await index.query(spread(300)[17], 1))[0].record.id == "r0017"
    await index.delete(["r0017"])
    await store.close()
    assert list(tmp_path.glob("damaged-*")) == []


async def test_index_whose_folder_vanished_is_rebuilt_on_open(tmp_path, caplog):
    store, _ = await filled(tmp_path, 300, sync_rows=20)
    await store.close()
    (file,) = index_files(tmp_path, "header.bin")
    shutil.rmtree(file.parent)
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    with caplog.at_level(logging.WARNING):
        index = await store.index("memory", "ana")
    assert "the index is rebuilt" in caplog.text
    assert [match.record.id for match in await index.query(spread(300)[17], 1)] == ["r0017"]
    await store.close()


async def test_sound_index_is_not_rebuilt(tmp_path, caplog):
    store, _ = await filled(tmp_path, 300, sync_rows=20)
    await store.close()
    with caplog.at_level(logging.WARNING):
        store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
        await store.index("memory", "ana")
    assert caplog.text == ""
    await store.close()


@pytest.mark.parametrize(
    ("part", "method"), [(ChromaRows, "put"), (chromadb.Collection, "modify"), (Client, "delete_collection")]
)
async def test_swap_cut_off_at_any_point_is_ended_or_undone(tmp_path, monkeypatch, part, method):
    store, _ = await filled(tmp_path, 300)
    catalog = store._catalog
    with monkeypatch.context() as patched:
        patched.setattr(part, method, _cut_off_after(getattr(part, method)))
        with pytest.raises(_CutOffError):
            await store._lane.run(lambda: catalog.rebuild(catalog.find("memory", "ana")))
    await store.close()
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    assert list(await store.owners("memory")) == ["ana"]
    index = await store.index("memory", "ana")
    assert await index.count() == 300
    assert (await index.query(spread(300)[9], 1))[0].record.id == "r0009"
    await store.close()


class _CutOffError(Exception):
    pass


def _cut_off_after(method):
    def call(*args, **kwargs):
        method(*args, **kwargs)
        raise _CutOffError

    return call


async def test_index_is_checked_again_after_many_replaced_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(chroma_index, "CHURN", 100)
    asked = []
    monkeypatch.setattr(chroma_health, "unreachable", lambda _, ids: asked.append(len(ids)) or [])
    store, index = await filled(tmp_path, 60, exact_rows=0)
    for expected in ([], [64], [64]):
        await index.upsert(rows_of(spread(70, seed=5)))
        await index.query(spread(1)[0], 1)
        assert asked == expected
    await store.close()


@pytest.mark.slow
async def test_rows_that_chroma_puts_out_of_reach_are_found_again_after_reopening(tmp_path, caplog, monkeypatch):
    """chroma#7758: deletes and upserts leave live rows that `get` returns and no query finds."""
    monkeypatch.setattr(chroma_health, "SAMPLE", 2_000)
    sparse = {"space": "cosine"}  # Chroma's own defaults, with which the fault shows most
    with monkeypatch.context() as patched:
        patched.setattr("memstory_reference.adapters.vectors.chroma_catalog.HNSW", sparse)
        store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
        index = await store.index("memory", "ana")
        for seed in range(1, 6):
            await _stir(index, seed)
            lost = chroma_health.unreachable(index._rows, index._rows.select({}))
            if lost:
                break
    assert lost, "five rounds of deletes and upserts left no row out of reach: is chroma#7758 repaired?"
    assert len(await index.get(lost)) == len(lost)
    await store.close()
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    with caplog.at_level(logging.WARNING):
        index = await store.index("memory", "ana")
    assert "the index is rebuilt" in caplog.text
    assert await index.count() == 2_000
    assert chroma_health.unreachable(index._rows, lost) == []
    await store.close()


async def _stir(index, seed):
    random = np.random.default_rng(seed)
    centres = random.standard_normal((50, 64))

    def rows(ids):
        vectors = centres[random.integers(50, size=len(ids))] + 0.05 * random.standard_normal((len(ids), 64))
        return [Record(id=one, text=one, vector=vector) for one, vector in zip(ids, vectors, strict=True)]

    if not await index.count():
        await index.upsert(rows([f"r{n:04}" for n in range(2_000)]))
    for turn in range(4):
        ids = [row.id for row in await index.list()]
        await index.delete([ids[n] for n in random.permutation(len(ids))[:500]])
        await index.upsert(rows([f"s{seed}-{turn}-{n}" for n in range(500)]))
        ids = [row.id for row in await index.list()]
        await index.upsert(rows([ids[n] for n in random.permutation(len(ids))[:1_000]]))


async def test_server_that_does_not_answer_is_one_clear_error():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    with pytest.raises(UnavailableError, match=f"http://127.0.0.1:{port} does not answer. Start it with 'chroma run"):
        await open_chroma_server("127.0.0.1", port, model="fixed")


@pytest.mark.parametrize("name", ["", "a", "-ab", "a..b", "a b", "x" * 80, None, {"$ne": ""}], ids=repr)
def test_collection_name_that_chroma_would_refuse_is_refused_first(name):
    with pytest.raises(InputError, match="collection"):
        name_of(name, "ana")


def test_two_owners_never_share_a_name():
    assert name_of("memory", "a") != name_of("memory", "b")
    assert name_of("memory.a", "b") != name_of("memory", "a.b")
