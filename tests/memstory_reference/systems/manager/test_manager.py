import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from memstory.contract.errors import Refused
from memstory.contract.target import Item, Ref, Scope
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS
from memstory_reference.ports import Record
from memstory_reference.systems.manager.manager import MemoryManager
from memstory_reference.systems.manager.memories import MemoryType

ANN = Scope(user="ann")
CONVERSATION, FACT, CONTEXT = MemoryType.CONVERSATION, MemoryType.FACT, MemoryType.CONTEXT
DAY = timedelta(days=1)


async def texts(manager, query="bees", owner="ann", **options):
    return [one.memory.content for one in await manager.search_memories(owner, query, **options)]


async def test_a_stored_memory_is_found_with_its_metadata_and_nothing_of_the_memorys_own(manager, clock):
    stored = await manager.store("ann", "bees are insects", FACT, {"field": "bees"})
    (found,) = await manager.search_memories("ann", "bees are insects")
    assert found.memory == stored
    assert found.memory.metadata == {"field": "bees"}
    assert found.memory.created_at == clock.now()
    assert found.score == pytest.approx(1.0, abs=1e-6)


async def test_a_type_filter_returns_that_type_alone(manager):
    for memory_type in MemoryType:
        await manager.store("ann", f"bees {memory_type}", memory_type)
    assert await texts(manager, memory_type=CONTEXT) == ["bees context"]


async def test_expired_memories_take_no_place_of_the_limit(manager, clock):
    for number in range(40):
        await manager.store("ann", "bees", CONTEXT, {"number": number})
    clock.moment += DAY
    await manager.store("ann", "bees and wasps", FACT)
    await manager.store("ann", "bees and ants and flies", FACT)
    assert await texts(manager, limit=2) == ["bees and wasps", "bees and ants and flies"]


async def test_of_equal_scores_the_newer_memory_comes_first(manager, clock):
    for day in range(3):
        await manager.store("ann", "bees", CONVERSATION, {"day": day})
        clock.moment += DAY
    assert [one.memory.metadata["day"] for one in await manager.search_memories("ann", "bees")] == [2, 1, 0]


async def test_another_sessions_talk_is_left_out_of_a_search_in_a_session_but_facts_are_not(manager):
    await manager.store("ann", "bees said here", CONVERSATION, session="s1")
    await manager.store("ann", "bees said there", CONVERSATION, session="s2")
    await manager.store("ann", "bees are known", FACT, session="s2")
    assert sorted(await texts(manager, session="s1")) == ["bees are known", "bees said here"]
    assert len(await texts(manager)) == 3


async def test_a_blank_query_finds_nothing_and_embeds_nothing(manager, world):
    await manager.store("ann", "bees", FACT)
    calls = world.embedder.calls
    assert (await texts(manager, " \n"), await texts(manager, limit=0), world.embedder.calls) == ([], [], calls)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limit": -1}, "limit -1"),
        ({"limit": True}, "limit True"),
        ({"limit": "5"}, "limit '5'"),
        ({"limit": 10**9}, "limit 1000000000"),
        ({"min_score": float("nan")}, "min_score nan"),
        ({"min_score": "0.3"}, "min_score '0.3'"),
        ({"min_score": 7}, "min_score 7"),
        ({"where": {"type": "fact"}}, "reserved"),
        ({"where": ["a"]}, "mapping"),
        ({"memory_type": "dream"}, "allowed: conversation, fact, context"),
        ({"query": {"$ne": ""}}, "query must be text"),
        ({"query": "x" * (DEFAULT_LIMITS.max_memory_characters + 1)}, "at most"),
    ],
)
async def test_a_search_that_makes_no_sense_is_refused_in_words(manager, options, said):
    with pytest.raises(InputError, match=said):
        await manager.search_memories("ann", **{"query": "bees", **options})


@pytest.mark.parametrize(
    "content", ["", "  \n", None, 5, {"a": 1}, "x" * (DEFAULT_LIMITS.max_memory_characters + 1), "half \ud800"]
)
async def test_content_that_cannot_be_kept_is_refused_before_anything_is_embedded(manager, world, content):
    with pytest.raises(InputError, match="content"):
        await manager.store("ann", content, FACT)
    assert world.embedder.calls == 0


async def test_a_batch_is_embedded_at_once(manager, world):
    await manager.add([Item(text=f"bee {number}") for number in range(20)], ANN)
    assert (world.embedder.calls, await manager.count("ann")) == (1, 20)


async def test_the_same_fact_is_stored_once_with_its_newest_metadata(manager, clock):
    first = await manager.store("ann", "bees are insects", FACT, {"heard": 1})
    clock.moment += DAY
    (again,) = (await manager.add([Item(text=" bees  are insects", metadata={"heard": 2})], ANN)).items
    assert (again.id, again.outcome) == (first.id, "bumped")
    (only,) = await manager.memories("ann")
    assert (only.metadata, only.created_at) == ({"heard": 2}, clock.now())


async def test_a_fact_that_was_corrected_is_not_overwritten_by_the_old_one(manager):
    first = await manager.store("ann", "bees are birds", FACT)
    await manager.update(Ref(id=first.id), Item(text="bees are insects"), ANN)
    second = await manager.store("ann", "bees are birds", FACT)
    assert second.id != first.id
    assert {one.content for one in await manager.memories("ann")} == {"bees are birds", "bees are insects"}


async def test_what_is_said_twice_in_a_conversation_stays_twice(manager):
    for _ in range(2):
        await manager.store("ann", "Hello.", CONVERSATION)
    assert await manager.count("ann") == 2


async def test_forget_tells_the_known_from_the_unknown(manager):
    memory = await manager.store("ann", "bees", FACT)
    found = [await manager.delete(Ref(id=one), ANN) for one in (memory.id, memory.id, "unknown", "")]
    assert found == [True, *[False] * 3]


async def test_what_has_expired_is_unknown_to_forget_and_goes_with_the_next_cleanup(manager, clock):
    memory = await manager.store("ann", "bees", CONTEXT)
    clock.moment += DAY
    assert not await manager.delete(Ref(id=memory.id), ANN)
    assert (await manager.cleanup_expired(), await manager.count("ann")) == (1, 0)


async def test_an_update_keeps_type_age_and_what_binds_a_context_to_its_key(manager, clock):
    entry = await manager.set_context("ann", "s1", "task", "write")
    clock.moment += timedelta(hours=1)
    changed = Item(text="review", metadata={"why": "done", "context_key": "other"})
    await manager.update(Ref(id=entry.id), changed, ANN)
    new = await manager.context_entry("ann", "s1", "task")
    assert (new.memory_type, new.created_at) == (CONTEXT, entry.created_at)
    assert new.metadata == {"why": "done", "context_key": "task", "session_id": "s1"}
    assert await manager.get_context("ann", "s1", "task") == "review"


async def test_an_update_of_what_is_not_there_changes_nothing(manager):
    with pytest.raises(Refused, match="nothing is remembered under 'unknown'"):
        await manager.update(Ref(id="unknown"), Item(text="bees"), ANN)
    assert await manager.count("ann") == 0


async def test_shorthands_store_a_fact_and_a_piece_of_conversation_with_metadata_of_any_name(manager, clock):
    # M-12, MF-6: `content` is a free key of the metadata.
    fact = await manager.remember_fact("ann", "bees", content="x", self="z")
    talk = await manager.remember_conversation("ann", "bees and you", field="talk")
    assert (fact.memory_type, fact.metadata) == (FACT, {"content": "x", "self": "z"})
    assert (talk.memory_type, talk.metadata) == (CONVERSATION, {"field": "talk"})
    assert {one.content for one in await manager.memories("ann")} == {"bees", "bees and you"}
    clock.moment += timedelta(days=31)
    assert [one.content for one in await manager.memories("ann")] == ["bees"]


async def test_shorthands_refuse_a_key_that_memories_use_themselves(manager):
    # MF-6
    with pytest.raises(InputError, match="type"):
        await manager.remember_fact("ann", "bees", type="context")


async def test_context_holds_the_newest_value_of_today(manager, clock):
    await manager.set_context("ann", "s1", "k", "1")
    await manager.set_context("ann", "s1", "k", "2")
    assert await manager.get_context("ann", "s1", "k") == "2"
    assert await manager.get_context("ann", "s1", "unknown") is None
    assert await manager.count("ann") == 1
    clock.moment += DAY
    assert await manager.get_context("ann", "s1", "k") is None


async def test_a_context_is_its_sessions_own(manager, clock):
    await manager.set_context("ann", "s1", "k", "1")
    clock.moment += timedelta(hours=1)
    await manager.set_context("ann", "s2", "k", "2")
    assert [await manager.get_context("ann", session, "k") for session in ("s1", "s2", "s3")] == ["1", "2", None]
    assert (await manager.context_entry("ann", None, "k")).content == "2"


@pytest.mark.parametrize("key", ["", "  ", 5, {"$ne": ""}, "k" * 501])
async def test_a_key_that_is_none_is_refused(manager, key):
    with pytest.raises(InputError, match="context key"):
        await manager.set_context("ann", "s1", key, "1")
    with pytest.raises(InputError, match="context key"):
        await manager.get_context("ann", "s1", key)


async def test_no_memory_can_pose_as_a_context_entry(manager):
    for memory_type in MemoryType:
        await manager.store("ann", "forged", memory_type, {"context_key": "k", "session_id": "s1"})
    assert await manager.get_context("ann", "s1", "k") is None
    assert await manager.context_entry("ann", None, "k") is None


async def test_cleanup_removes_what_is_over_of_every_owner_and_tells_how_much(manager, clock):
    for owner in ("ann", "bob"):
        await manager.store(owner, "talk", CONVERSATION)
        await manager.store(owner, "today", CONTEXT)
        await manager.store(owner, "fact", FACT)
    clock.moment = datetime(2026, 5, 1, 23, 59, 59, tzinfo=UTC)
    assert await manager.cleanup_expired() == 0
    clock.moment = datetime(2026, 5, 2, tzinfo=UTC)
    assert [await manager.cleanup_expired() for _ in range(2)] == [2, 0]
    clock.moment = datetime(2026, 5, 31, 12, tzinfo=UTC)
    assert await manager.cleanup_expired() == 0
    clock.moment += timedelta(microseconds=1)
    assert [await manager.cleanup_expired() for _ in range(2)] == [2, 0]
    clock.moment += 3650 * DAY
    assert await manager.cleanup_expired() == 0
    assert await manager.count("ann") == 1


async def test_a_cleanup_with_nothing_due_reads_nothing(manager, world, clock, monkeypatch):
    await manager.store("ann", "today", CONTEXT)
    await manager.cleanup_expired()
    reads = []
    index = await world.index()
    monkeypatch.setattr(index, "list", lambda *args: reads.append(args))
    clock.moment += timedelta(hours=1)
    assert (await manager.cleanup_expired(), reads) == (0, [])


async def test_what_is_stored_after_a_cleanup_is_cleaned_up_in_its_turn(manager, clock):
    await manager.store("ann", "fact", FACT)
    await manager.cleanup_expired()
    await manager.store("ann", "today", CONTEXT)
    clock.moment += DAY
    assert await manager.cleanup_expired() == 1


async def test_a_context_that_is_written_anew_during_a_cleanup_survives_it(manager, clock, monkeypatch):
    await manager.set_context("ann", "s1", "task", "yesterday")
    clock.moment += DAY
    read = MemoryManager._readable

    async def slowly(self, owner, *which):
        rows = await read(self, owner, *which)
        await manager.set_context("ann", "s1", "task", "today")
        return rows

    monkeypatch.setattr(MemoryManager, "_readable", slowly)
    assert await manager.cleanup_expired() == 0
    assert await manager.get_context("ann", "s1", "task") == "today"


async def test_a_cleanup_that_failed_is_done_again(manager, clock, monkeypatch):
    await manager.store("ann", "today", CONTEXT)
    clock.moment += DAY
    with monkeypatch.context() as patch:
        patch.setattr(MemoryManager, "_readable", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await manager.cleanup_expired()
    assert await manager.cleanup_expired() == 1


async def test_rows_that_are_no_memories_are_left_alone_and_reported(manager, world, caplog):
    await manager.store("ann", "bees", FACT)
    index = await world.index()
    (vector,) = await world.embedder.embed(["bees"], "document")
    await index.upsert([Record(id="odd", text="bees", metadata={"type": "fact", "created_at": ""}, vector=vector)])
    assert await texts(manager) == ["bees"]
    assert await manager.get(Ref(id="odd"), ANN) is None
    assert await manager.cleanup_expired() == 0
    assert (await manager.unreadable("ann"), await manager.count("ann")) == (1, 2)
    assert "1 rows are not memories" in caplog.text


async def test_many_memories_are_listed_whole_oldest_first(manager, clock, monkeypatch):
    monkeypatch.setattr("memstory_reference.systems.manager.manager.PAGE", 7)
    for number in range(25):
        await manager.store("ann", f"bee {number}", CONVERSATION)
        clock.moment += timedelta(seconds=1)
    listed = [memory.content for memory in await manager.memories("ann")]
    assert listed == [f"bee {number}" for number in range(25)]
    assert await manager.memories("ann", [CONVERSATION], limit=2) == (await manager.memories("ann"))[:2]
    assert await manager.memories("ann", [FACT]) == []


async def test_forget_all_removes_one_session_or_everything_of_one_owner(manager):
    for owner in ("ann", "bob"):
        await manager.store(owner, "here", CONVERSATION, session="s1")
        await manager.store(owner, "there", CONVERSATION, session="s2")
        await manager.store(owner, "fact", FACT, session="s1")
    assert await manager.delete(Ref(), Scope(user="ann", session="s1"))
    assert await manager.count("ann") == 2
    assert await manager.delete(Ref(), ANN)
    assert not await manager.delete(Ref(), ANN)
    assert (await manager.count("ann"), await manager.count("bob")) == (0, 3)


async def test_concurrent_writes_lose_nothing_and_a_key_keeps_one_row(manager):
    await asyncio.gather(
        *(manager.store("ann", f"bee {number}", FACT) for number in range(50)),
        *(manager.set_context("ann", "s1", "k", str(number)) for number in range(50)),
        *(manager.store("ann", "the same fact", FACT) for _ in range(50)),
    )
    assert await manager.count("ann") == 52
