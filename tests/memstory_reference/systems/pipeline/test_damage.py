"""A file that was damaged from outside: one clear error, or what is whole goes on and the rest is counted."""

import json
import logging
from itertools import count

import pytest

from memstory.contract.errors import MemstoryError
from memstory.contract.target import Ref, Scope
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.systems.pipeline.settings import PipelineSettings

ANN, BOB = Scope(user="ann"), Scope(user="bob")


@pytest.fixture
def opened(tmp_path, hashed_vectors):
    numbers = count()

    async def opening(embedder=None):
        ports = MemoryPorts(embedder=embedder or hashed_vectors(), new_id=lambda: f"id-{next(numbers)}")
        return await open_pipeline(PipelineSettings(path=str(tmp_path / "store"), store_threshold=0), ports)

    return opening


async def texts(pipeline, user="ann"):
    return sorted(one.content for one in await pipeline.memories(user))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("memories", "content = 'The vault code is 9999'"),
        ("memories", "content = x'00ff'"),
        ("memories", "kind = 'unheard of'"),
        ("memories", "kind = x'00ff'"),
        ("memories", "kind = CAST(x'66ff' AS TEXT)"),
        ("memories", "created_at = 'noon'"),
        ("memories", "updated_at = 5"),
        ("memories", "session = x'00ff'"),
        ("memories", "content = CAST(x'66ff' AS TEXT)"),
        ("memories", "created_at = CAST(x'66ff' AS TEXT)"),
        ("preferences", "content = CAST(x'66ff' AS TEXT)"),
        ("memories", "importance = 'much'"),
        ("preferences", "content = 'I prefer spaces'"),
        ("preferences", "hash = ''"),
        ("preferences", "updated_at = x'00'"),
    ],
)
async def test_a_row_that_was_changed_outside_is_left_out_counted_and_can_be_deleted(
    make_pipeline, caplog, table, change
):
    pipeline = make_pipeline(store_threshold=0)
    rows = {"code": "The vault code is 4711", "tabs": "I prefer tabs", "w": "whole"}
    kinds = {"tabs": "procedural"}
    await pipeline.import_memories(
        [{"id": one, "text": text, "kind": kinds.get(one, "episodic")} for one, text in rows.items()], "ann"
    )
    await pipeline.import_memories([{"text": "of bob"}], "bob")
    damaged = "code" if table == "memories" else "tabs"
    pipeline._database.execute(f"UPDATE {table} SET {change} WHERE id = ?", (damaged,))  # noqa: S608
    left = sorted(text for one, text in rows.items() if one != damaged)
    assert await texts(pipeline) == left
    for by_score in (False, True):
        found = await pipeline.recall("vault", "ann", 10, by_score=by_score)
        assert sorted(one.memory.content for one in found.memories) == left
    assert await pipeline.get(Ref(id=damaged), ANN) is None
    with caplog.at_level(logging.ERROR):
        status = await pipeline.inspect("status", {}, ANN)
    assert json.loads(json.dumps(status)) == {**status, "damaged": 1}
    assert f"memory {damaged} is damaged and left out" in caplog.text
    assert (await pipeline.inspect("status", {}, BOB))["damaged"] == 0
    assert await pipeline.delete(Ref(id=damaged), ANN)
    assert (await pipeline.inspect("status", {}, ANN))["damaged"] == 0
    assert await pipeline.inspect("drift", {}, ANN) <= 1e-6


@pytest.mark.parametrize("identifier", ["x'00ff'", "CAST(x'66ff' AS TEXT)"])
async def test_a_preference_is_said_anew_where_the_one_of_its_key_is_damaged(make_pipeline, identifier):
    pipeline = make_pipeline(store_threshold=0)
    await pipeline.ingest("I prefer tabs", "ann", "s")
    assert len(await texts(pipeline)) == 1
    pipeline._database.execute(f"UPDATE preferences SET id = {identifier}")  # noqa: S608
    assert await texts(pipeline) == []
    await pipeline.inspect("status", {}, ANN)  # from here on the vectors are held
    await pipeline.ingest("I prefer tabs", "ann", "s")
    assert len(await texts(pipeline)) == 1


@pytest.mark.parametrize("change", ["hash = ''", "id = CAST(x'66ff' AS TEXT)"])
async def test_a_user_is_forgotten_with_what_is_damaged_and_nothing_of_it_is_counted(make_pipeline, change):
    pipeline = make_pipeline(store_threshold=0)
    rows = {"a": "episodic", "b": "episodic", "tabs": "procedural"}
    await pipeline.import_memories(
        [{"id": one, "text": f"it is {one}", "kind": kind} for one, kind in rows.items()], "ann"
    )
    assert (await pipeline.inspect("status", {}, ANN))["procedural"] == 1
    for which in ("memories SET {} WHERE id = 'a'", "preferences SET {}"):
        pipeline._database.execute(f"UPDATE {which.format(change)}")
    assert await pipeline.delete(Ref(), ANN)
    counts = await pipeline.inspect("status", {}, ANN)
    assert {name: count for name, count in counts.items() if count} == {}
    assert pipeline._database.rows("SELECT * FROM versions") == []


async def test_a_column_that_has_another_name_is_one_clear_error(opened, tmp_path):
    pipeline = await opened()
    await pipeline.ingest("I hate leeks", "ann", "s")
    await pipeline.close()
    file = tmp_path / "store" / "pipeline.sqlite3"
    file.write_bytes(file.read_bytes().replace(b"    session TEXT NOT NULL", b"    sessjon TEXT NOT NULL"))
    said = set()
    try:
        pipeline = await opened()
        await pipeline.memories("ann")
    except MemstoryError as error:
        said.add(str(error))
    assert "pipeline.sqlite3" in said.pop()
