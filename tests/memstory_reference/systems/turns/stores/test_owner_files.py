"""An owner's file: one that an earlier version made, one that lacks something, and many of them."""

import asyncio
import os
import resource
import sqlite3
import sys
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.composition.turns import turns_in_folder
from memstory_reference.errors import StoreConflictError
from memstory_reference.systems.turns.stores import owner_store, tables_store, turns_store
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn
from memstory_reference.systems.turns.turn import Conditions, NewTurn, Turn, checked_turn
from memstory_reference.text.words import stems

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST, NORTH = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
ANY = Conditions()


def written(identifier, text, vector=EAST, **fields):
    turn = checked_turn(NewTurn(text=text, **fields), identifier, NOON)
    return IndexedTurn(turn=turn, vector=vector, stems=turn.stems)


@pytest.fixture
async def store(tmp_path):
    opened = turns_in_folder(tmp_path, "fixed-2")
    yield opened
    await opened.close()


def file_of(store, owner):
    return store._path(owner)


def has_log(store, owner):
    return Path(f"{file_of(store, owner)}-wal").exists()


def owners_with_open_files(folder):
    held = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    return {one.split(".")[0] for one in held if str(folder) in one} - {str(folder / "owners"), f"{folder}/"}


async def test_a_store_of_a_later_version_is_refused(store):
    await store.put("ann", [written("a", "tea")])
    await store.close()
    with sqlite3.connect(file_of(store, "ann")) as db:
        db.execute("UPDATE about SET value = '99' WHERE name = 'schema'")
    again = turns_in_folder(file_of(store, "ann").parent, "fixed-2")
    with pytest.raises(StoreConflictError, match="schema '99'"):
        await again.count("ann")
    await again.close()


async def test_texts_are_read_again_by_a_version_that_reads_them_in_another_way(store, monkeypatch, tmp_path):
    await store.put("ann", [written("a", "tea")])
    await store.close()
    for module in (tables_store, owner_store):
        monkeypatch.setattr(module, "VERSION", tables_store.VERSION + 1)
    monkeypatch.setattr(Turn, "stems", property(lambda _: ["other", "words"]))
    again = turns_in_folder(tmp_path, "fixed-2")
    assert (await again.pool("ann", EAST, ["other", "tea"], 5, ANY)).holding == {"other": 1}
    await again.close()


async def test_a_matrix_that_was_lost_is_made_from_the_store(store, tmp_path):
    await store.put("ann", [written("a", "tea", NORTH), written("b", "milk")])
    await store.close()
    file_of(store, "ann").with_suffix(".f32").unlink()
    again = turns_in_folder(tmp_path, "fixed-2")
    assert (await again.pool("ann", NORTH, [], 5, ANY)).cosines.tolist() == [1.0, 0.0]
    await again.close()


@pytest.fixture
def small_files():
    """Say how large a file of this process may become; None lifts the limit, and so does the end."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (usual[0] if size is None else size, usual[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def test_where_files_cannot_grow_writes_are_refused_and_what_was_acknowledged_holds(store, tmp_path, small_files):
    kept, refused = {}, []
    small_files(150_000)
    for batch in range(30):
        new = [written(f"{batch}-{n}", f"word{batch} {'tea ' * 200}", speaker="Ann", session="s") for n in range(10)]
        try:
            await store.put("ann", new)
            kept |= {one.turn.id: one.turn for one in new}
        except UnavailableError as error:
            refused.append(str(error))
    assert kept
    assert refused
    assert all("room" in message for message in refused)
    assert {turn.id: turn for turn in await store.list_turns("ann", ANY)} == kept
    first = next(iter(kept))
    with pytest.raises(UnavailableError):
        await store.put("ann", [written(first, "longer " * 14_000)])
    before = await store.pool("ann", EAST, ["tea"], 500, ANY)
    assert (len(before), set(before.cosines)) == (len(kept), {1.0})
    small_files(None)
    await store.put("ann", [written("last", "there is room again")])
    await store.close()
    again = turns_in_folder(tmp_path, "fixed-2")
    pool = await again.pool("ann", EAST, ["word0"], 500, ANY)
    assert (len(pool), set(pool.cosines), pool.holding) == (len(kept) + 1, {1.0}, {"word0": 10})
    await again.close()


async def test_a_second_process_is_refused_while_one_has_the_folder(tmp_path):
    first = turns_in_folder(tmp_path / "turns", "fixed-2")
    await first.put("ann", [written("a", "tea")])
    code = (
        "import sys; from pathlib import Path; from memstory_reference.composition.turns import turns_in_folder\n"
        "turns_in_folder(Path(sys.argv[1]), 'fixed-2')"
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path / "turns"), stderr=asyncio.subprocess.PIPE
    )
    _, said = await other.communicate()
    assert b"StoreConflictError" in said
    assert await first.count("ann") == 1
    await first.close()
    second = turns_in_folder(tmp_path / "turns", "fixed-2")
    assert await second.count("ann") == 1
    await second.close()


async def test_more_owners_than_files_stay_open_are_all_found_and_forgotten(store, monkeypatch, tmp_path):
    monkeypatch.setattr(turns_store, "OPEN_OWNERS", 2)
    monkeypatch.setattr(turns_store, "TURNS_IN_MEMORY", 3 * turns_store.LEAST_TURNS)
    names = [f"owner{number}" for number in range(9)]
    for _ in range(2):
        for name in names:
            await store.put(name, [written(f"{name}{_}", f"tea of {name}", speaker=name, session="s")])
    for name in names:
        pool = await store.pool(name, EAST, [*stems(name)], 5, ANY)
        found = await store.by_numbers(name, pool.numbers.tolist())
        assert {turn.speaker for turn in found.values()} == {name}
        assert await store.count(name) == 2
    assert len(store._open) == 3
    assert len(owners_with_open_files(tmp_path)) <= 2
    assert [await store.forget_owner(name) for name in names] == [2] * 9
    assert await store.owners() == []


async def test_owners_of_one_turn_or_none_leave_memory_too(store, monkeypatch):
    monkeypatch.setattr(turns_store, "TURNS_IN_MEMORY", 2 * turns_store.LEAST_TURNS)
    for name in ("ann", "bob", "cid", "dan"):
        await store.put(name, [written("a", "tea")])
        await store.delete(name, ["a"] if name < "c" else [])
    assert list(store._open) == ["cid", "dan"]
    assert await store.forget_owner("dan") == 1
    assert [await store.count(name) for name in ("ann", "cid")] == [0, 1]
    assert list(store._open) == ["ann", "cid"]


async def test_owners_who_cannot_be_read_keep_no_more_files_open_than_others(store, monkeypatch, tmp_path):
    monkeypatch.setattr(turns_store, "OPEN_OWNERS", 2)
    names = [f"owner{number}" for number in range(5)]
    for name in names:
        await store.put(name, [written("a", "tea")])

    def follow(owner, _):
        owner.reading.rows("SELECT 1")
        raise UnavailableError("the disk is broken")

    monkeypatch.setattr(turns_store.OwnerFile, "follow", follow)
    for name in names:
        with pytest.raises(UnavailableError):
            await store.count(name)
    assert len(owners_with_open_files(tmp_path)) <= 2


async def test_a_file_that_is_only_read_has_no_log_and_is_never_behind_what_was_written(store, monkeypatch):
    monkeypatch.setattr(turns_store, "OPEN_OWNERS", 1)

    async def text():
        await store.put("bob", [written("b", "milk")])  # now the files of Ann are closed
        return (await store.get("ann", ["a"]))[0].text

    await store.put("ann", [written("a", "tea")])
    assert (await text(), has_log(store, "ann")) == ("tea", False)
    await store.put("ann", [written("a", "coffee")])
    assert (await text(), has_log(store, "ann")) == ("coffee", False)
    with sqlite3.connect(file_of(store, "ann")) as other:  # for it the log stays, and has the last word
        other.execute("BEGIN")
        other.execute("SELECT * FROM turns").fetchall()
        await store.put("ann", [written("c", "cocoa"), written("a", "water")])
        assert (await text(), has_log(store, "ann")) == ("water", True)
    other.close()


async def test_opening_an_owner_takes_far_less_memory_than_the_vectors(store):
    vectors = np.eye(1, 384, dtype=np.float32).repeat(8_000, axis=0)
    words = " ".join(f"word{number}" for number in range(20))
    await store.put("ann", [written(f"t{number}", words, vector) for number, vector in enumerate(vectors)])
    file = file_of(store, "ann")
    await store.close()
    tracemalloc.start()
    try:
        opened = turns_store.OwnerFile("ann", file, model="fixed-2")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert opened.count() == len(vectors)
    opened.close()
    assert most < vectors.nbytes / 2


@pytest.mark.parametrize(
    ("files", "owners"), [(1024, 128), (64, 16), (8192, 1024), (1_048_576, 1024), (resource.RLIM_INFINITY, 1024)]
)
def test_open_owners_take_half_of_the_files_and_no_limit_is_no_small_one(files, owners):
    assert turns_store.owners_within(files) == owners


def follow_all_but_ann(owner, numbers):
    if owner.name == "ann":
        raise UnavailableError("ann cannot be read")
    owner_store.OwnerTurns.follow(owner, numbers)


async def test_an_owner_whose_file_cannot_be_read_any_more_shuts_nobody_else_out(store, monkeypatch):
    await store.put("bob", [written("b", "milk")])
    await store.put("ann", [written("a", "tea")])
    monkeypatch.setattr(turns_store.OwnerFile, "follow", follow_all_but_ann)
    assert [one.id for one in await store.get("bob", ["b"])] == ["b"]


async def test_an_owner_who_is_forgotten_though_the_open_file_cannot_be_read_begins_anew(store, monkeypatch, tmp_path):
    await store.put("ann", [written("a", "tea")])
    with monkeypatch.context() as broken:
        broken.setattr(turns_store.OwnerFile, "follow", follow_all_but_ann)
        assert await store.forget_owner("ann") == 1
    assert await store.get("ann", ["a"]) == []
    await store.put("ann", [written("b", "milk")])
    await store.close()
    again = turns_in_folder(tmp_path, "fixed-2")
    assert [one.id for one in await again.list_turns("ann", ANY)] == ["b"]
    await again.close()
