"""What was replaced or edited keeps its relations: preferences their history, summaries their originals."""

import sqlite3

import numpy as np
import pytest

TABS, SPACES = "I prefer tabs", "I prefer spaces"


async def say(service, clock, *texts):
    for text in texts:
        clock.move(seconds=1)
        await service.ingest(text, "ann", "s")


async def stated(service):
    return [one.content for one in await service.memories("ann", ["procedural"])]


async def told(service, key="prefer:indentation"):
    return [one.content for one in await service.history(key, "ann")]


async def test_a_replaced_preference_is_history_and_names_its_successor(make_service, clock):
    service = make_service()
    await say(service, clock, TABS, SPACES)
    new, old = await service.history("prefer:indentation", "ann")
    assert [(new.content, new.replaced_by), (old.content, old.replaced_by)] == [(SPACES, None), (TABS, new.id)]
    assert await service.get(old.id, "ann") == old
    assert await stated(service) == [SPACES]
    assert [one.memory.content for one in (await service.recall("tabs", "ann")).memories] == [SPACES]
    assert [one.memory.content for one in (await service.recall("tabs", "ann", by_score=True)).memories] == [SPACES]
    assert len(await service.memories("ann", include_replaced=True)) == 2
    counts = await service.status("ann")
    assert (counts["procedural"], counts["replaced"]) == (1, 1)


async def test_deleting_the_later_word_lets_the_earlier_hold_again(make_service, clock):
    service = make_service()
    await say(service, clock, TABS, SPACES, "I prefer tabs over spaces")
    first, second, third = reversed(await service.history("prefer:indentation", "ann"))
    await service.delete([second.id], "ann")
    assert [one.replaced_by for one in await service.history("prefer:indentation", "ann")] == [None, third.id]
    await service.delete([third.id], "ann")
    assert await stated(service) == [TABS]
    assert [one.memory.content for one in (await service.recall("x", "ann", by_score=True)).memories] == [TABS]
    await service.delete([first.id], "ann")
    assert await service.memories("ann", include_replaced=True) == []


async def test_all_of_a_history_can_be_deleted_at_once_and_forgotten(make_service, clock):
    service = make_service()
    await say(service, clock, TABS, SPACES)
    ids = [one.id for one in await service.history("prefer:indentation", "ann")]
    assert await service.delete(ids, "ann") == ids
    assert await service.memories("ann", include_replaced=True) == []
    await say(service, clock, TABS, SPACES)
    assert await service.forget("ann") == 2


async def test_an_edited_preference_has_the_key_of_its_new_words(make_service, clock):
    service = make_service()
    await say(service, clock, TABS)
    (tabs,) = await service.memories("ann")
    changed = await service.update(tabs.id, "I hate rain", "ann")
    assert (changed.key, changed.id) == ("hate:rain", tabs.id)
    await say(service, clock, SPACES)
    assert sorted(await stated(service)) == ["I hate rain", SPACES]


async def test_an_edited_preference_leaves_its_key_to_what_it_had_replaced(make_service, clock):
    service = make_service()
    await say(service, clock, TABS, SPACES, "I hate rain")
    spaces = await service.preference("prefer:indentation", "ann")
    await service.update(spaces.id, "I hate rain, really", "ann")
    assert await told(service) == [TABS]
    assert await told(service, "hate:rain") == ["I hate rain, really", "I hate rain"]
    assert sorted(await stated(service)) == ["I hate rain, really", TABS]


async def test_an_edit_of_the_same_key_changes_the_words_alone(make_service, clock):
    service = make_service()
    await say(service, clock, TABS, SPACES)
    new, old = await service.history("prefer:indentation", "ann")
    await service.update(old.id, "I prefer tabs, please", "ann")
    await service.update(new.id, "I prefer spaces, please", "ann")
    assert sorted(await told(service)) == ["I prefer spaces, please", "I prefer tabs, please"]
    assert await stated(service) == ["I prefer spaces, please"]


async def test_an_edited_summary_still_stands_for_its_session(make_service, clock):
    service = make_service(compression_threshold=1, auto_compress=False, store_threshold=0)
    for number in range(3):
        clock.move(hours=1)
        await service.ingest(f"We walked to place {number} with Ilse", "ann", f"s{number}")
    report = await service.compress("ann")
    before = await service.status("ann")
    await service.update(report.summaries[0], "They walked to a place", "ann")
    assert await service.status("ann") == before
    (summary,) = [one for one in await service.memories("ann") if one.compression_source]
    assert (summary.content, summary.source_session_id) == ("They walked to a place", "s0")
    found = [one.memory.content for one in (await service.recall("place 0", "ann")).memories]
    assert "They walked to a place" in found
    assert "We walked to place 0 with Ilse" not in found
    await service.delete([summary.id], "ann")
    assert (await service.status("ann"))["compressed"] == 0


async def test_an_export_takes_the_history_along(make_service, clock):
    service = make_service()
    await say(service, clock, TABS, SPACES, "I hate rain")
    rows = await service.export_rows("ann")
    for _ in range(2):
        await service.import_rows(rows, "bob")
        assert await service.export_rows("bob") == rows


@pytest.mark.parametrize("named", ["nowhere", "other"])
async def test_a_successor_that_does_not_exist_replaces_nothing(make_service, named):
    service = make_service()
    rows = [{"text": TABS, "kind": "procedural", "replaced_by": named},
            {"text": "I hate rain", "kind": "procedural", "id": "other"}]  # fmt: skip
    await service.import_rows(rows, "ann")
    assert sorted(await stated(service)) == ["I hate rain", TABS]


FIRST_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO about VALUES ('schema', '1'), ('model', 'hashed-16');
CREATE TABLE memories (row INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL,
    content TEXT NOT NULL, hash TEXT NOT NULL, session TEXT NOT NULL, importance REAL NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, role TEXT NOT NULL, source TEXT, times_seen INTEGER NOT NULL,
    compressed INTEGER NOT NULL, summary TEXT, source_session TEXT, compression_source INTEGER NOT NULL,
    vector BLOB NOT NULL, UNIQUE (owner, id));
CREATE TABLE preferences (row INTEGER PRIMARY KEY, owner TEXT NOT NULL, id TEXT NOT NULL, key TEXT NOT NULL,
    content TEXT NOT NULL, hash TEXT NOT NULL, session TEXT NOT NULL, importance REAL NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, role TEXT NOT NULL, source TEXT, times_seen INTEGER NOT NULL,
    UNIQUE (owner, key), UNIQUE (owner, id));
CREATE TABLE embeddings (row INTEGER PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL,
    UNIQUE (owner, hash));
CREATE TABLE centroids (owner TEXT PRIMARY KEY, total BLOB NOT NULL, count INTEGER NOT NULL);
CREATE TABLE outbox (row INTEGER PRIMARY KEY, owner TEXT, id TEXT);
"""


async def test_a_store_of_the_first_schema_is_brought_up_and_keeps_all_it_held(make_service, tmp_path, clock):
    from memstory_reference.systems.pipeline.ingest.chunking import content_hash  # noqa: PLC0415

    vector = np.eye(1, 16, dtype=np.float32).tobytes()
    at = "2026-01-01T00:00:00.000000+00:00"
    file = sqlite3.connect(tmp_path / "pipeline.sqlite3")
    file.executescript(FIRST_SCHEMA)
    event = ("ann", "e", "episodic", "an event", content_hash("an event"), "s", 0.6, at, at, "user", None, 1)
    marks = ", ".join("?" * 17)
    file.execute(f"INSERT INTO memories VALUES (1, {marks})", (*event, 1, "nowhere", None, 0, vector))  # noqa: S608
    file.execute("INSERT INTO centroids VALUES ('ann', ?, 1)", (np.eye(1, 16).tobytes(),))
    for number, text in enumerate((TABS, "I hate rain")):
        values = ("ann", f"p{number}", ("prefer:indentation", "hate:rain")[number], text, content_hash(text))
        file.execute(f"INSERT INTO preferences VALUES (NULL, {marks[:34]})", (*values, *event[5:]))  # noqa: S608
    file.execute("INSERT INTO embeddings VALUES (1, 'ann', ?, ?)", (content_hash(TABS), vector))
    file.commit()
    file.close()
    service = make_service({"ask": [1, *[0] * 15]})
    assert [one.memory.content for one in (await service.recall("ask", "ann")).memories] == [
        "I hate rain", TABS, "an event",
    ]  # fmt: skip
    assert [one.memory.content for one in (await service.recall("ask", "ann", by_score=True)).memories] == [
        "an event", TABS,
    ]  # fmt: skip
    await service.reindex("ann")
    assert len((await service.recall("ask", "ann", by_score=True)).memories) == 3
    await say(service, clock, SPACES)
    assert await told(service) == [SPACES, TABS]
