"""What was replaced or edited keeps its relations: preferences their history, summaries their originals."""

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
