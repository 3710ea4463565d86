import itertools
import logging
import os
import shutil
import threading

import chromadb
import numpy as np
import pytest
from chromadb.api.client import Client

from memstory_reference.adapters.vectors import chroma_collections, chroma_files, chroma_follower, timely
from memstory_reference.adapters.vectors.chroma import open_chroma
from memstory_reference.adapters.vectors.chroma_collections import collection_name, unreachable_ids
from memstory_reference.adapters.vectors.chroma_rows import ChromaRows
from memstory_reference.adapters.vectors.stored_rows import StoredRows
from memstory_reference.ports import Record

DAMAGES = list(itertools.product(chroma_files.FILES, ["empty", "half", "gone"]))


def index_files(folder, name):
    return sorted((folder / "chroma").glob(f"*/{name}"))


async def lost(store, ids=None):
    """Return the rows that Chroma's index does not reach."""

    def ask():
        rows = StoredRows(store._db, "memory", "ana")
        found = store.follower()._found(rows)
        records = rows.read(rows.select({}) if ids is None else ids)
        return [
            one
            for at in range(0, len(records), 500)
            for one in unreachable_ids(found.collection, records[at : at + 500])
        ]

    return await store._lane.run(ask)


@pytest.fixture
async def indexed(filled, spread, monkeypatch):
    """Return what writes rows that Chroma has indexed and saved, and closes the store."""

    async def make(folder, count=300):
        monkeypatch.setattr(chroma_collections, "SYNC_ROWS", 20)
        store, index = await filled(folder, count, exact_rows=0)
        await index.query(spread(1)[0], 1)
        await store.close()

    return make


async def test_small_owner_is_searched_exactly_and_a_grown_one_by_chroma(tmp_path, filled, spread, rows_of):
    store, index = await filled(tmp_path, 30, exact_rows=40)
    await index.query(spread(1)[0], 1)
    assert not (tmp_path / "chroma").exists()
    await index.upsert(rows_of(spread(30, seed=2), prefix="s"))
    assert (await index.query(spread(30, seed=2)[3], 1))[0].record.id == "s0003"
    assert (tmp_path / "chroma" / "chroma.sqlite3").exists()
    await store.close()


async def test_index_holds_no_text_and_nothing_of_a_deleted_row(tmp_path, filled, spread, rows_of):
    store, index = await filled(tmp_path, 5, exact_rows=0)
    await index.upsert(rows_of(spread(1), prefix="secret"))
    await index.query(spread(1)[0], 1)
    await index.delete(["secret0000"])
    await store.close()
    client = chromadb.PersistentClient(str(tmp_path / "chroma"))
    kept = client.get_collection(collection_name("memory", "ana"), embedding_function=None).get()
    client.close()
    assert sorted(kept["ids"]) == [f"r{n:04}" for n in range(5)]
    assert set(kept["documents"]) == {""}


async def test_what_chroma_could_not_take_is_found_and_taken_later(  # noqa: PLR0917
    tmp_path, caplog, filled, spread, rows_of, monkeypatch
):
    store, index = await filled(tmp_path, 4, exact_rows=0)
    await index.query(spread(1)[0], 1)

    def broken(*_, **__):
        raise chromadb.errors.InternalError("database or disk is full")

    await index.upsert(rows_of(spread(4, seed=3), prefix="n"))
    with monkeypatch.context() as patched:
        patched.setattr(chromadb.Collection, "upsert", broken)
        with caplog.at_level(logging.WARNING):
            assert (await index.query(spread(4, seed=3)[1], 1))[0].record.id == "n0001"
        assert "disk is full" in caplog.text
        assert await index.delete(["n0003"]) == ["n0003"]
    assert (await index.query(spread(4, seed=3)[1], 1))[0].record.id == "n0001"
    assert await index.count() == 7
    assert await lost(store) == []
    await store.close()


async def test_index_that_does_not_answer_in_time_is_given_up_and_made_again_at_the_next_opening(  # noqa: PLR0917
    tmp_path, caplog, filled, spread, rows_of, monkeypatch
):
    monkeypatch.setattr(timely, "SECONDS", 0.5)
    store, index = await filled(tmp_path, 4, exact_rows=0)
    await index.query(spread(1)[0], 1)
    stuck = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(chromadb.Collection, "upsert", lambda *_, **__: stuck.wait())
        await index.upsert(rows_of(spread(4, seed=3), prefix="n"))
        with caplog.at_level(logging.WARNING):
            assert (await index.query(spread(4, seed=3)[1], 1))[0].record.id == "n0001"
        assert "did not return within 0.5 s" in caplog.text
        assert await index.delete(["n0003"]) == ["n0003"]
        assert (await index.query(spread(4, seed=3)[2], 1))[0].record.id == "n0002"
        await store.close()
        stuck.set()
    monkeypatch.undo()
    assert (tmp_path / "chroma.stale").is_dir()
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    assert (await index.query(spread(4, seed=3)[1], 1))[0].record.id == "n0001"
    assert await lost(store) == []
    assert not (tmp_path / "chroma.stale").exists()
    await store.close()


@pytest.mark.parametrize("damaged", DAMAGES, ids=" ".join)
async def test_damaged_index_file_is_made_again_and_nothing_is_lost(tmp_path, caplog, indexed, spread, damaged):
    await indexed(tmp_path)
    name, damage = damaged
    (file,) = index_files(tmp_path, name)
    match damage:
        case "gone":
            file.unlink()
        case "empty":
            os.truncate(file, 0)
        case _:
            os.truncate(file, file.stat().st_size // 2)
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    with caplog.at_level(logging.WARNING):
        assert (await index.query(spread(300)[17], 1))[0].record.id == "r0017"
    assert "the index files were damaged" in caplog.text
    assert await lost(store) == []
    assert await index.count() == 300
    await store.close()


async def test_index_whose_folder_vanished_is_rebuilt(tmp_path, caplog, indexed, spread):
    await indexed(tmp_path)
    (file,) = index_files(tmp_path, "header.bin")
    shutil.rmtree(file.parent)
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    with caplog.at_level(logging.WARNING):
        assert [match.record.id for match in await index.query(spread(300)[17], 1)] == ["r0017"]
    assert "the index is rebuilt" in caplog.text
    await store.close()


async def test_index_that_was_deleted_is_made_again(tmp_path, indexed, spread):
    await indexed(tmp_path)
    shutil.rmtree(tmp_path / "chroma")
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    assert [match.record.id for match in await index.query(spread(300)[17], 1)] == ["r0017"]
    await store.close()


async def test_sound_index_is_not_rebuilt(tmp_path, caplog, indexed, spread):
    await indexed(tmp_path)
    with caplog.at_level(logging.WARNING):
        store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
        await (await store.index("memory", "ana")).query(spread(1)[0], 1)
    assert caplog.text == ""
    await store.close()


class _CutOffError(Exception):
    pass


def _cut_off_after(method):
    def call(*args, **kwargs):
        method(*args, **kwargs)
        raise _CutOffError

    return call


@pytest.mark.parametrize("call", [(ChromaRows, "put"), (StoredRows, "follow"), (Client, "delete_collection")])
async def test_rebuilding_that_is_cut_off_at_any_point_goes_on_later(tmp_path, indexed, spread, monkeypatch, call):
    await indexed(tmp_path)
    part, method = call
    (file,) = index_files(tmp_path, "header.bin")
    shutil.rmtree(file.parent)
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    with monkeypatch.context() as patched:
        patched.setattr(part, method, _cut_off_after(getattr(part, method)))
        with pytest.raises(_CutOffError):
            await index.query(spread(1)[0], 1)
    await store.close()
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    assert (await index.query(spread(300)[9], 1))[0].record.id == "r0009"
    assert await lost(store) == []
    await store.close()


async def test_index_is_checked_again_after_many_replaced_rows(tmp_path, filled, spread, rows_of, monkeypatch):
    monkeypatch.setattr(chroma_follower, "CHURN", 100)
    asked = []
    monkeypatch.setattr(chroma_follower, "unreachable_ids", lambda _, rows: asked.append(len(rows)) or [])
    store, index = await filled(tmp_path, 60, exact_rows=0)
    for expected in ([64], [64], [64, 64]):
        await index.upsert(rows_of(spread(70, seed=5)))
        await index.query(spread(1)[0], 1)
        assert asked == expected
    await store.close()


@pytest.mark.slow
async def test_more_rows_than_a_batch_of_chroma_are_written_at_once(tmp_path, filled, spread):
    store, index = await filled(tmp_path, 12_000, exact_rows=0)
    assert (await index.query(spread(12_000)[11_000], 1))[0].record.id == "r11000"
    assert await lost(store, ["r0000", "r11999"]) == []
    await store.close()


@pytest.mark.slow
async def test_rows_that_chroma_puts_out_of_reach_are_found_again_after_reopening(tmp_path, caplog, monkeypatch):
    """chroma#7758: deletes and upserts leave live rows that `get` returns and no query finds."""
    monkeypatch.setattr(chroma_collections, "SAMPLE", 2_000)
    with monkeypatch.context() as patched:
        patched.setattr(chroma_follower, "CHURN", 1_000_000)
        patched.setattr(
            chroma_collections, "HNSW", {"space": "cosine"}
        )  # Chroma's own, with which the fault shows most
        store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
        index = await store.index("memory", "ana")
        for seed in range(1, 6):
            await _stir(index, seed)
            missed = await lost(store)
            if missed:
                break
    assert missed, "five rounds of deletes and upserts left no row out of reach: is chroma#7758 repaired?"
    assert len(await index.get(missed)) == len(missed)
    await store.close()
    store = await open_chroma(tmp_path, model="fixed", exact_rows=0)
    index = await store.index("memory", "ana")
    with caplog.at_level(logging.WARNING):
        await index.query(np.ones(64), 1)
    assert "the index is rebuilt" in caplog.text
    assert await index.count() == 2_000
    assert await lost(store, missed) == []
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
        await index.query(centres[0], 1)
        await index.delete([ids[n] for n in random.permutation(len(ids))[:500]])
        await index.upsert(rows([f"s{seed}-{turn}-{n}" for n in range(500)]))
        ids = [row.id for row in await index.list()]
        await index.upsert(rows([ids[n] for n in random.permutation(len(ids))[:1_000]]))
