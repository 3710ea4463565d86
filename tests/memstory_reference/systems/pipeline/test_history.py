"""What was replaced or edited keeps its relations: preferences their history, summaries their originals."""

import pytest

from memstory.contract.target import Item, Ref, Scope

ANN, BOB = Scope(user="ann"), Scope(user="bob")

TABS, SPACES = "I prefer tabs", "I prefer spaces"


async def say(pipeline, clock, *texts):
    for text in texts:
        clock.move(seconds=1)
        await pipeline.ingest(text, "ann", "s")


async def preference_texts(pipeline):
    return [one.content for one in await pipeline.memories("ann", ["procedural"])]


async def history_texts(pipeline, key="prefer:indentation"):
    return [one.content for one in await pipeline.history(key, "ann")]


async def test_a_replaced_preference_is_history_and_names_its_successor(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS, SPACES)
    new, old = await pipeline.history("prefer:indentation", "ann")
    assert [(new.content, new.replaced_by), (old.content, old.replaced_by)] == [(SPACES, None), (TABS, new.id)]
    assert (await pipeline.get(Ref(id=old.id), ANN)).text == TABS
    assert await preference_texts(pipeline) == [SPACES]
    assert [one.memory.content for one in (await pipeline.recall("tabs", "ann")).memories] == [SPACES]
    assert [one.memory.content for one in (await pipeline.recall("tabs", "ann", by_score=True)).memories] == [SPACES]
    assert len(await pipeline.memories("ann", include_replaced=True)) == 2
    counts = await pipeline.inspect("status", {}, ANN)
    assert (counts["procedural"], counts["replaced"]) == (1, 1)


async def test_deleting_the_later_word_lets_the_earlier_hold_again(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS, SPACES, "I prefer tabs over spaces")
    first, second, third = reversed(await pipeline.history("prefer:indentation", "ann"))
    await pipeline.delete(Ref(id=second.id), ANN)
    assert [one.replaced_by for one in await pipeline.history("prefer:indentation", "ann")] == [None, third.id]
    await pipeline.delete(Ref(id=third.id), ANN)
    assert await preference_texts(pipeline) == [TABS]
    assert [one.memory.content for one in (await pipeline.recall("x", "ann", by_score=True)).memories] == [TABS]
    await pipeline.delete(Ref(id=first.id), ANN)
    assert await pipeline.memories("ann", include_replaced=True) == []


async def test_all_of_a_history_can_be_deleted_at_once_and_forgotten(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS, SPACES)
    assert await pipeline.delete(Ref(), Scope(user="ann", session="s"))
    assert await pipeline.memories("ann", include_replaced=True) == []
    await say(pipeline, clock, TABS, SPACES)
    assert await pipeline.delete(Ref(), ANN)


async def test_an_edited_preference_has_the_key_of_its_new_words(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS)
    (tabs,) = await pipeline.memories("ann")
    (changed,) = (await pipeline.update(Ref(id=tabs.id), Item(text="I hate rain"), ANN)).items
    assert (changed.key, changed.id) == ("hate:rain", tabs.id)
    await say(pipeline, clock, SPACES)
    assert sorted(await preference_texts(pipeline)) == ["I hate rain", SPACES]


async def test_an_edited_preference_leaves_its_key_to_what_it_had_replaced(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS, SPACES, "I hate rain")
    spaces = await pipeline.get(Ref(key="prefer:indentation"), ANN)
    await pipeline.update(Ref(id=spaces.id), Item(text="I hate rain, really"), ANN)
    assert await history_texts(pipeline) == [TABS]
    assert await history_texts(pipeline, "hate:rain") == ["I hate rain, really", "I hate rain"]
    assert sorted(await preference_texts(pipeline)) == ["I hate rain, really", TABS]


async def test_an_edit_of_the_same_key_changes_the_words_alone(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS, SPACES)
    new, old = await pipeline.history("prefer:indentation", "ann")
    await pipeline.update(Ref(id=old.id), Item(text="I prefer tabs, please"), ANN)
    await pipeline.update(Ref(id=new.id), Item(text="I prefer spaces, please"), ANN)
    assert sorted(await history_texts(pipeline)) == ["I prefer spaces, please", "I prefer tabs, please"]
    assert await preference_texts(pipeline) == ["I prefer spaces, please"]


async def test_an_edited_summary_still_stands_for_its_session(make_pipeline, clock):
    pipeline = make_pipeline(compression_threshold=1, auto_compress=False, store_threshold=0)
    for number in range(3):
        clock.move(hours=1)
        await pipeline.ingest(f"We walked to place {number} with Ilse", "ann", f"s{number}")
    report = await pipeline.compress("ann")
    before = await pipeline.inspect("status", {}, ANN)
    await pipeline.update(Ref(id=report.summaries[0]), Item(text="They walked to a place"), ANN)
    assert await pipeline.inspect("status", {}, ANN) == before
    (summary,) = [one for one in await pipeline.memories("ann") if one.compression_source]
    assert (summary.content, summary.source_session_id) == ("They walked to a place", "s0")
    found = [one.memory.content for one in (await pipeline.recall("place 0", "ann")).memories]
    assert "They walked to a place" in found
    assert "We walked to place 0 with Ilse" not in found
    await pipeline.delete(Ref(id=summary.id), ANN)
    assert (await pipeline.inspect("status", {}, ANN))["compressed"] == 0


async def test_an_export_takes_the_history_along(make_pipeline, clock):
    pipeline = make_pipeline()
    await say(pipeline, clock, TABS, SPACES, "I hate rain")
    rows = await pipeline.export_rows(ANN)
    for _ in range(2):
        await pipeline.import_memories(rows, "bob")
        assert await pipeline.export_rows(BOB) == rows


@pytest.mark.parametrize("named", ["nowhere", "other"])
async def test_a_successor_that_does_not_exist_replaces_nothing(make_pipeline, named):
    pipeline = make_pipeline()
    rows = [{"text": TABS, "kind": "procedural", "replaced_by": named},
            {"text": "I hate rain", "kind": "procedural", "id": "other"}]  # fmt: skip
    await pipeline.import_memories(rows, "ann")
    assert sorted(await preference_texts(pipeline)) == ["I hate rain", TABS]
