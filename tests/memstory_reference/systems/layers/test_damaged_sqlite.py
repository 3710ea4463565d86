"""Files of the layers that a disk, a copy or a hand has changed: the rest is usable, and the damage is reported."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.composition.layers import log_in_file
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.logs import FEEDBACK, checked_feedback
from memstory_reference.systems.layers.logs import SessionFeedbackRecord as Feedback
from memstory_reference.systems.layers.records import Fact, Layer, MemoryRecord, SessionMemoryBuffer, Standing

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EAST = np.array([1, 0], np.float32)
FILE = "memory.sqlite3"


def record(identifier, word, owner="ann"):
    fact = Fact(category="note", subject="User", predicate="LIKES", object=word, evidence_quote=word)
    return MemoryRecord(id=identifier, owner=owner, content=fact, created_at=NOON, updated_at=NOON, vector=EAST)


def session(*texts):
    buffer = SessionMemoryBuffer(owner="ann", session="s", arc_id="a", started_at=NOON, last_at=NOON)
    for text in texts:
        buffer = buffer.add_turn(text, "I see.", NOON)
    return buffer


@pytest.fixture
def file(tmp_path):
    return tmp_path / FILE


@pytest.fixture
async def open_store(file):
    stores = []

    def open_():
        stores.append(LayersStore(layers_database(file, model="fixed-2")))
        return stores[-1]

    yield open_
    for store in stores:
        await store.aclose()


def by_hand(file, *statements):
    with closing(sqlite3.connect(file)) as connection:
        for statement in statements:
            connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
        connection.commit()


@pytest.fixture
async def filled(open_store):
    store = open_store()
    await store.aput_batch(
        [record("a", "tea"), record("b", "cake"), record("c", "tea and cake"), record("z", "x", "bob")]
    )
    await store.asave(session("one", "two"))
    await store.asession_key()
    await store.aclose()


DAMAGES = {
    "a text that still reads well": "UPDATE records SET content = replace(content, 'tea', 'gin') WHERE id = 'a'",
    "a date": "UPDATE records SET created_at = '2026-13-99' WHERE id = 'a'",
    "no JSON": "UPDATE records SET content = '{' WHERE id = 'a'",
    "other JSON": "UPDATE records SET content = '[1]' WHERE id = 'a'",
    "no UTF-8": "UPDATE records SET content = CAST(x'7bff' AS TEXT) WHERE id = 'a'",
    "a date that is no UTF-8": "UPDATE records SET created_at = CAST(x'66ff' AS TEXT) WHERE id = 'a'",
    "a standing": "UPDATE records SET standing = 'actif' WHERE id = 'a'",
    "a count": "UPDATE records SET count = 7 WHERE id = 'a'",
}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_row_is_left_out_and_told(file, open_store, caplog, damage):
    by_hand(file, DAMAGES[damage])
    store = open_store()
    assert await store.aget("ann", ["a"]) == []
    assert sorted(one.id for one in await store.alist("ann", None, tuple(Standing))) == ["b", "c"]
    by_word = await store.asearch_tokens("ann", Layer.SEMANTIC, {"tea"}, 5)
    assert [one.id for one in await store.aget("ann", [one.id for one in by_word])] == ["c"]
    by_meaning = await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)
    assert {one.id for one in await store.aget("ann", [one.id for one in by_meaning])} == {"b", "c"}
    assert await store.adamaged_ids("ann") == ["a"]
    assert await store.adamaged_ids("bob") == []
    assert [one.message for one in caplog.records if "record a is damaged" in one.message] == [caplog.messages[0]]


@pytest.mark.usefixtures("filled")
async def test_a_damaged_row_can_be_deleted_and_leaves_no_token(file, open_store):
    by_hand(file, "UPDATE records SET content = replace(content, 'tea', 'gin') WHERE id = 'a'")
    store = open_store()
    assert await store.adelete("ann", ["a"]) == ["a"]
    assert await store.adamaged_ids("ann") == []
    assert await store.adelete_owner("bob") == 1
    with closing(sqlite3.connect(file)) as connection:
        rows = {row for (row,) in connection.execute("SELECT row FROM records")}
        assert {row for (row,) in connection.execute("SELECT DISTINCT row FROM tokens")} == rows


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("damage", ["id = CAST(x'66ff' AS TEXT)", "content = '{'"])
async def test_an_owner_is_forgotten_with_what_is_damaged(file, open_store, damage):
    by_hand(file, f"UPDATE records SET {damage} WHERE id = 'a'")  # noqa: S608  (a test's own words)
    store = open_store()
    by_meaning = await store.asearch_similar("ann", Layer.SEMANTIC, EAST, 5)
    assert {one.id for one in await store.aget("ann", [one.id for one in by_meaning])} == {"b", "c"}
    assert await store.adelete_owner("ann") == 3
    await store.aclose()
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (1,)


@pytest.mark.usefixtures("filled")
async def test_a_row_that_is_written_again_is_whole(file, open_store):
    by_hand(file, "UPDATE records SET content = replace(content, 'tea', 'gin') WHERE id = 'a'")
    store = open_store()
    await store.aput(record("a", "water"))
    assert await store.adamaged_ids("ann") == []
    assert await store.asearch_tokens("ann", Layer.SEMANTIC, {"gin"}, 5) == []
    assert [one.id for one in await store.asearch_tokens("ann", Layer.SEMANTIC, {"water"}, 5)] == ["a"]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("blob", [b"", b"123", b"\xff" * 8, b"\0" * 8])
async def test_a_damaged_vector_is_no_neighbour(file, open_store, blob):
    by_hand(file, ("UPDATE records SET vector = ? WHERE id = 'b'", (blob,)))
    found = await open_store().asearch_similar("ann", Layer.SEMANTIC, EAST, 5)
    assert {one.id for one in found} == {"a", "c"}


@pytest.mark.usefixtures("filled")
async def test_a_damaged_turn_is_left_out_and_a_damaged_session_begins_again(file, open_store, caplog):
    by_hand(file, "UPDATE turns SET data = replace(data, 'one', 'own')")
    store = open_store()
    assert [turn.user for turn in (await store.aload("ann", "s")).turns] == ["two"]
    await store.aclose()
    by_hand(file, "UPDATE sessions SET data = '{'")
    store = open_store()
    assert await store.aload("ann", "s") is None
    assert await store.aactive() == []
    assert {"turn 1 of a session", "an active session"} <= {
        message.partition(" is damaged")[0] for message in caplog.messages
    }


@pytest.mark.usefixtures("filled")
async def test_a_damaged_session_key_is_told(file, open_store):
    by_hand(file, "UPDATE about SET value = 'no key' WHERE name = 'session_key'")
    with pytest.raises(MemstoryError, match=f"{FILE}.*restore a backup"):
        await open_store().asession_key()


async def test_a_damaged_record_of_a_log_is_left_out(tmp_path, caplog):
    log = log_in_file(tmp_path / "feedback.sqlite3", FEEDBACK)
    label, source, comment = checked_feedback("helpful", "text", "fine")
    for name in ("a", "b", "c", "d", "e"):
        await log.aappend(
            Feedback(id=name, owner="ann", session="s", at=NOON, label=label, source=source, comment=comment)
        )
    by_hand(
        tmp_path / "feedback.sqlite3",
        "UPDATE session_feedback SET at = 'soon' WHERE id = 'a'",
        "UPDATE session_feedback SET comment = CAST(x'ff' AS TEXT) WHERE id = 'b'",
        "UPDATE session_feedback SET label = 'fine' WHERE id = 'c'",
        "UPDATE session_feedback SET comment = 'null' WHERE id = 'e'",
    )
    assert [one.id for one in await log.alist("ann")] == ["d"]
    assert len(caplog.messages) == 4
    await log.aclose()


async def test_a_turn_is_written_once_however_long_its_session(open_store, file):
    store = open_store()
    await store.asave(session(*["word " * 5_000] * 40))
    buffer = await store.aload("ann", "s", last=0)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log = file.with_name(f"{FILE}-wal")
    before = log.stat().st_size
    await store.asave(buffer.add_turn("a word", "I see.", NOON))
    assert log.stat().st_size - before < 100_000
