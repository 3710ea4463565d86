"""What becomes of replaced records when people edit and delete: no duplicates, no lost history."""

import pytest

from memstory_reference.systems.layers.records import Fact, Layer, Rule, Standing

OWNER = "user:ann"


def fact(word, predicate="LIKES", category="interest"):
    return Fact(category=category, subject="User", predicate=predicate, object=word, evidence_quote=f"it is {word}")


def home(town):
    return fact(town, "LIVES_IN", "location")


def rule(text):
    return Rule(rule=text, explicit=True, evidence_quote=text)


async def stored(service, *contents):
    return [(await service.records.remember(OWNER, None, [one]))[0].id for one in contents]


async def standings(service):
    every = await service.records.list_records(OWNER, [Layer.SEMANTIC, Layer.PROCEDURAL], tuple(Standing))
    return {
        getattr(one.content, "object", None) or one.content.rule: (str(one.standing), one.superseded_by)
        for one in every
    }


@pytest.mark.parametrize(("first", "second"), [(fact("tea"), home("Oslo")), (rule("Be brief."), rule("Use French."))])
async def test_an_edit_that_says_what_is_stored_makes_one_record_of_two(open_layers, first, second):
    service = await open_layers()
    one, other = await stored(service, first, second)
    edited = await service.records.edit(OWNER, one, second)
    (found,) = await service.records.list_records(OWNER)
    assert (found.id, found.count, found.content) == (edited.id, 2, second)
    assert found.id == one != other


async def test_an_edit_that_changes_a_word_of_itself_is_no_duplicate(open_layers):
    service = await open_layers()
    (one,) = await stored(service, fact("black tea"))
    await service.records.edit(OWNER, one, fact("green tea"))
    await service.records.edit(OWNER, one, fact("green tea"))
    (found,) = await service.records.list_records(OWNER)
    assert (found.id, found.count) == (one, 1)


async def test_an_edit_of_what_is_archived_leaves_the_active_alone(open_layers):
    service = await open_layers()
    one, _ = await stored(service, fact("tea"), fact("cake"))
    await service.records.archive(OWNER, one)
    await service.records.edit(OWNER, one, fact("cake"))
    assert [one.count for one in await service.records.list_records(OWNER)] == [1]


async def test_what_a_deleted_record_had_replaced_is_used_again(open_layers):
    service = await open_layers()
    oslo, bergen = await stored(service, home("Oslo"), home("Bergen"))
    assert [one.id for one in (await service.records.forget_records(OWNER, [bergen])).records] == [bergen]
    assert await standings(service) == {"Oslo": ("active", None)}
    assert [one.record.id for one in await service.records.search(OWNER, "Oslo")] == [oslo]


async def test_only_the_latest_of_what_was_replaced_is_used_again(open_layers):
    service = await open_layers()
    _, rome, bergen = await stored(service, home("Oslo"), home("Rome"), home("Bergen"))
    await service.records.forget_records(OWNER, [bergen])
    assert await standings(service) == {"Oslo": ("superseded", rome), "Rome": ("active", None)}


async def test_deleting_what_was_replaced_points_to_what_is_left(open_layers):
    service = await open_layers()
    oslo, rome, bergen = await stored(service, home("Oslo"), home("Rome"), home("Bergen"))
    await service.records.forget_records(OWNER, [rome])
    assert await standings(service) == {"Oslo": ("superseded", bergen), "Bergen": ("active", None)}
    await service.records.forget_records(OWNER, [bergen, oslo])
    assert await standings(service) == {}


async def test_several_deleted_at_once_revive_what_they_replaced(open_layers):
    service = await open_layers()
    _, rome, bergen = await stored(service, home("Oslo"), home("Rome"), home("Bergen"))
    await service.records.forget_records(OWNER, [rome, bergen])
    assert await standings(service) == {"Oslo": ("active", None)}


async def test_what_an_archived_record_had_replaced_is_archived_when_that_goes(open_layers):
    service = await open_layers()
    oslo, bergen = await stored(service, home("Oslo"), home("Bergen"))
    await service.records.archive(OWNER, bergen)
    await service.records.forget_records(OWNER, [bergen])
    assert await standings(service) == {"Oslo": ("archived", None)}
    assert await service.records.restore(OWNER, oslo)


async def test_a_rule_that_is_used_again_stays_under_the_cap(open_layers):
    service = await open_layers(rule_cap=2)
    _, always, _, _ = await stored(
        service, rule("Never use emojis."), rule("Always use emojis."), rule("Be kind."), rule("Write in French.")
    )
    await service.records.forget_records(OWNER, [always])
    assert len(await service.records.list_records(OWNER)) == 2


@pytest.mark.parametrize("on", [False, True])
async def test_the_recall_switch_outlives_a_restart(open_layers, on):
    service = await open_layers()
    await stored(service, home("Oslo"))
    await service.set_recall(OWNER, on=False)
    await service.set_recall(OWNER, on=on)
    await service.close()
    service = await open_layers()
    who = await service.who("ann", "t")
    assert (await service.status(OWNER))["recall"] is on
    assert bool((await service.turn("Where do I live? Oslo?", who)).context) is on
    assert (await service.status("user:bob"))["recall"] is True


async def test_forgetting_an_owner_forgets_the_switch(open_layers):
    service = await open_layers()
    await service.set_recall(OWNER, on=False)
    await service.forget_owner(OWNER)
    assert (await service.status(OWNER))["recall"] is True


SAID = [
    (["I live in Utrecht.", "I don't live in Utrecht any more."], {("NOT_LIVES_IN", "Utrecht")}),
    (["I prefer tea.", "I live in Oslo.", "Sorry, I got it wrong: I prefer coffee."],
     {("PREFERS", "coffee"), ("LIVES_IN", "Oslo")}),
    (["I prefer tea.", "I prefer window seats."], {("PREFERS", "tea"), ("PREFERS", "window seats")}),
    (["My desk number is D-31.", "My desk number is E-12."], {("DESK_NUMBER_IS", "E-12")}),
    (["My desk number is D-31.", "Thanks a lot!", "It's E-12 now."], {("DESK_NUMBER_IS", "E-12")}),
    (["I don't eat fish.", "I eat fish."], {("EATS", "fish")}),
]  # fmt: skip


@pytest.mark.parametrize(("turns", "expected"), SAID)
async def test_without_a_model_denials_and_corrections_replace_what_they_speak_of_alone(open_layers, turns, expected):
    service = await open_layers()
    who = await service.who("ann", "t")
    for said in turns:
        await service.turn(said, who)
        await service.settle()
    active = await service.records.list_records(OWNER, [Layer.SEMANTIC])
    assert {(one.content.predicate, one.content.object) for one in active} == expected
