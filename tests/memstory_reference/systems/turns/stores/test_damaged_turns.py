"""A row that a disk, a copy or a hand has changed is left out and counted; the others go on, and so do other owners."""

import sqlite3
from contextlib import closing

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.composition.turns import turns_in_folder
from memstory_reference.systems.turns.service import TurnsService
from memstory_reference.systems.turns.turn import NewTurn

TEXTS = [f"Tin {number} holds tea from Assam." for number in range(6)]
NO_UTF8 = "CAST(x'66ff' AS TEXT)"

DAMAGES = [
    "kind = 'x'",
    f"kind = {NO_UTF8}",
    "metadata = ''",
    "metadata = '[1]'",
    f"text = {NO_UTF8}",
    "text = x'00'",
    "noted_at = ''",
    "noted_at = '2026-01-01T12:00:00'",
    f"noted_at = {NO_UTF8}",
    "said_at = 'noon'",
    f"session = {NO_UTF8}",
    f"speaker = {NO_UTF8}",
    f"id = {NO_UTF8}",
    f"key = {NO_UTF8}",
    "number = 1 << 40",
    "number = -5",
]
MENDED = ["moment = 'soon'", "moment = NULL", "signs = 999", "signs = 'x'", "stems = NULL", "stems = x'00'"]


@pytest.fixture
async def reopened(memory, tmp_path, embedder):
    """Close the memory, change the file of an owner, and open it again."""
    opened = []

    async def reopen(statement, *values, owner="ann"):
        file = memory._store._path(owner)
        await memory.close()
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(statement, values)
        store = turns_in_folder(tmp_path / "turns", embedder.model)
        opened.append(TurnsService(store=store, embedder=embedder, clock=memory._clock, new_id=iter("xyz").__next__))
        return opened[-1]

    yield reopen
    for one in opened:
        await one.close()


@pytest.fixture
async def filled(memory):
    told = [NewTurn(text=text, speaker="Ann", session="s", key=f"k{n}") for n, text in enumerate(TEXTS)]
    await memory.add("ann", told)
    await memory.add("bob", [NewTurn(text="Bob likes plums.")])


async def texts(memory, owner="ann"):
    return [turn.text for turn in await memory.list_turns(owner)]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_row_is_left_out_and_counted_and_the_others_go_on(reopened, caplog, damage):
    memory = await reopened(f"UPDATE turns SET {damage} WHERE text = ?", TEXTS[2])  # noqa: S608  (a test's own words)
    whole = [text for text in TEXTS if text != TEXTS[2]]
    assert await texts(memory) == whole
    found = {one.turn.text for one in await memory.search("ann", "Which tin holds tea from Assam?", 10)}
    assert found == set(whole)
    assert "Tin 3" in await memory.context("ann", "What holds tin 3?")
    assert await memory.get("ann", "id2") is None
    assert (await memory.by_key("ann", "k3")).text == TEXTS[3]
    status = await memory.status("ann")
    assert (status["turns"], status["unreadable"]) == (5, 1)
    assert (await memory.status("bob"))["unreadable"] == 0
    assert [one for one in caplog.messages if ".sqlite3" in one and "estore a backup" in one]
    await memory.add("ann", [NewTurn(text="Tin 9 is empty.")])
    assert await texts(memory) == [*whole, "Tin 9 is empty."]
    assert await memory.forget_owner("ann") == 6
    assert await texts(memory) == []
    assert await texts(memory, "bob") == ["Bob likes plums."]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("damage", MENDED)
async def test_what_follows_from_a_text_is_read_from_it_again(reopened, damage):
    memory = await reopened(f"UPDATE turns SET {damage} WHERE text = ?", TEXTS[2])  # noqa: S608  (a test's own words)
    assert await texts(memory) == TEXTS
    (first, *_) = await memory.search("ann", TEXTS[2], 10)
    assert first.turn.text == TEXTS[2]
    assert (await memory.status("ann"))["unreadable"] == 0


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("vector", ["x'00'", "zeroblob(256)", "'x'", "x'0000c07f' || zeroblob(252)"])
@pytest.mark.parametrize("number", [1, 3])
async def test_a_turn_whose_vector_is_damaged_is_found_by_its_words(reopened, tmp_path, vector, number):
    for matrix in (tmp_path / "turns").glob("*.f32"):
        matrix.unlink()
    memory = await reopened(f"UPDATE vectors SET vector = CAST({vector} AS BLOB) WHERE number = ?", number)  # noqa: S608
    assert await texts(memory) == TEXTS
    found = [one.turn.text for one in await memory.search("ann", TEXTS[number - 1], 10)]
    assert sorted(found) == TEXTS


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("damage", ["kind = 'x'", "number = number - 100", "number = number + (1 << 40)"])
async def test_a_damaged_row_can_be_written_again_and_deleted(reopened, damage):
    memory = await reopened(f"UPDATE turns SET {damage} WHERE id IN ('id1', 'id2')")  # noqa: S608  (as above)
    (again,) = await memory.add("ann", [NewTurn(text="Tin 1 is new.", speaker="Ann", session="s", key="k1")])
    assert await memory.delete("ann", ["id2", "id3"]) == ["id2", "id3"]
    assert await texts(memory) == [TEXTS[0], *TEXTS[4:], again.turn.text]
    assert await memory.forget_session("ann", "s") == 5
    assert (await memory.status("ann"))["turns"] == 0


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
async def test_a_file_that_is_no_database_shuts_out_its_owner_alone_and_can_be_forgotten(reopened, content):
    memory = await reopened("SELECT 1")
    file = memory._store._path("ann")
    file.write_bytes(content)
    for call in (texts(memory), memory.search("ann", "tea"), memory.status("ann")):
        with pytest.raises(UnavailableError, match=f"{file.name}.*restore a backup"):
            await call
    assert await texts(memory, "bob") == ["Bob likes plums."]
    assert await memory.owners() == ["ann", "bob"]
    await memory.forget_owner("ann")
    assert await memory.owners() == ["bob"]
    assert await texts(memory) == []
    assert not file.exists()
