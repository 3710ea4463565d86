"""A file that was damaged from outside: one clear error, or what is whole goes on and the rest is counted."""

import logging
import random
import subprocess
import sys
from itertools import count

import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.errors import StoreConflictError
from memstory_reference.systems.pipeline.config import PipelineConfig

CONFIG = PipelineConfig(store_threshold=0)


@pytest.fixture
def opened(tmp_path, hashed_vectors):
    numbers = count()

    async def opening(embedder=None):
        return await open_pipeline(
            tmp_path / "store",
            embedder=embedder or hashed_vectors(),
            chat=None,
            clock=SystemClock(),
            config=CONFIG,
            new_id=lambda: f"id-{next(numbers)}",
        )

    return opening


async def texts(service, user="ann"):
    return sorted(one.content for one in await service.memories(user))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("memories", "content = 'The vault code is 9999'"),
        ("memories", "content = x'00ff'"),
        ("memories", "kind = 'unheard of'"),
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
    make_service, caplog, table, change
):
    service = make_service(store_threshold=0)
    rows = {"code": "The vault code is 4711", "tabs": "I prefer tabs", "w": "whole"}
    kinds = {"tabs": "procedural"}
    await service.import_rows(
        [{"id": one, "text": text, "kind": kinds.get(one, "episodic")} for one, text in rows.items()], "ann"
    )
    await service.import_rows([{"text": "of bob"}], "bob")
    damaged = "code" if table == "memories" else "tabs"
    service._database.execute(f"UPDATE {table} SET {change} WHERE id = ?", (damaged,))  # noqa: S608
    left = sorted(text for one, text in rows.items() if one != damaged)
    assert await texts(service) == left
    for by_score in (False, True):
        found = await service.recall("vault", "ann", 10, by_score=by_score)
        assert sorted(one.memory.content for one in found.memories) == left
    assert await service.get(damaged, "ann") is None
    with caplog.at_level(logging.ERROR):
        assert (await service.status("ann"))["damaged"] == 1
    assert f"memory {damaged} is damaged and left out" in caplog.text
    assert (await service.status("bob"))["damaged"] == 0
    assert await service.delete([damaged], "ann") == [damaged]
    assert (await service.status("ann"))["damaged"] == 0
    assert await service.centroid_drift("ann") <= 1e-6


async def test_a_broken_folder_of_vectors_of_an_earlier_version_is_no_obstacle(opened, tmp_path):
    service = await opened()
    await service.ingest("We met Ilse in Graz", "ann", "s")
    await service.close()
    vectors = tmp_path / "store" / "vectors"
    vectors.mkdir()
    for name in ("chroma.sqlite3", "vectors.sqlite3"):
        (vectors / name).write_bytes(b"nothing of a database")
    service = await opened()
    assert len((await service.recall("Ilse", "ann")).memories) == 1
    await service.close()
    assert not vectors.exists()


async def test_a_second_store_in_the_folder_is_refused_until_the_first_is_closed(opened):
    first = await opened()
    with pytest.raises(StoreConflictError, match="in use by another process"):
        await opened()
    await first.close()
    await (await opened()).close()


SECOND = """
import asyncio, sys
from pathlib import Path
from memstory_reference.adapters.clocks import SystemClock
from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.errors import StoreConflictError
from memstory_reference.systems.pipeline.config import PipelineConfig
class Embedder:
    model, dimension = "hashed-16", 16
try:
    asyncio.run(open_pipeline(Path(sys.argv[1]), embedder=Embedder(), chat=None, clock=SystemClock(), new_id=str,
                              config=PipelineConfig()))
except StoreConflictError as error:
    sys.exit(str(error))
"""


async def test_a_second_process_is_refused(opened, tmp_path):
    first = await opened()
    second = subprocess.run(  # noqa: ASYNC221, S603  (our own; nothing else runs meanwhile)
        [sys.executable, "-c", SECOND, tmp_path / "store"], capture_output=True, text=True, check=False
    )
    assert second.returncode == 1
    assert "in use by another process" in second.stderr
    assert "Traceback" not in second.stderr
    await first.close()


async def test_a_store_of_another_model_lets_go_of_the_folder(opened, hashed_vectors):
    await (await opened()).close()
    with pytest.raises(StoreConflictError, match="model"):
        await opened(hashed_vectors(model="other"))
    await (await opened()).close()


@pytest.mark.parametrize("seed", range(24))
async def test_a_damaged_file_gives_one_clear_error_or_what_is_whole(opened, tmp_path, seed):
    service = await opened()
    for number in range(40):
        await service.ingest(f"event {number} {'and so on ' * 10}", "ann", f"s{number % 3}")
        await service.ingest(f"I hate dish {number}", "ann", "s")
    await service.close()
    file = tmp_path / "store" / "pipeline.sqlite3"
    data = bytearray(file.read_bytes())
    chance = random.Random(seed)  # noqa: S311  (damage, not secrets)
    if seed % 4 == 0:
        data = data[: chance.randrange(len(data))]
    else:
        for _ in range(chance.choice((1, 20, 400))):
            data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(bytes(data))
    said, again = set(), None
    try:
        again = await opened()
    except MemstoryError as error:
        said.add(str(error))
    for call in () if again is None else (
        lambda: again.memories("ann"), lambda: again.recall("event", "ann"),
        lambda: again.recall("dish", "ann", by_score=True),
        lambda: again.ingest("a new event came", "ann", "s"), lambda: again.status("ann"), lambda: again.reindex("ann"),
        lambda: again.export_rows("ann"), lambda: again.compress("ann"), lambda: again.delete(["id-1"], "ann"),
        lambda: again.centroid_drift("ann"), lambda: again.forget("ann"),
    ):  # fmt: skip
        try:
            await call()
        except MemstoryError as error:
            said.add(str(error))
    if again is not None:
        await again.close()
    assert all("pipeline.sqlite3" in one or "damaged" in one for one in said), said


async def test_a_column_that_has_another_name_is_one_clear_error(opened, tmp_path):
    service = await opened()
    await service.ingest("I hate leeks", "ann", "s")
    await service.close()
    file = tmp_path / "store" / "pipeline.sqlite3"
    file.write_bytes(file.read_bytes().replace(b"    session TEXT NOT NULL", b"    sessjon TEXT NOT NULL"))
    said = set()
    try:
        service = await opened()
        await service.memories("ann")
    except MemstoryError as error:
        said.add(str(error))
    assert "pipeline.sqlite3" in said.pop()
