"""Forgetting in talk: over sessions, restarts, summaries, transcripts, and what waits for its session's end."""

import asyncio

import pytest

from memstory_reference.systems.layers.records import Arc, Fact, Layer, Standing
from memstory_reference.systems.layers.sessions import EndReason
from memstory_reference.systems.layers.settings import MemoryMode

TALK = [
    "My name is Quimperline. I came here from the northern islands by boat.",
    "The harbour has forty berths, of which mine is the last one on the left side.",
    "Quimperline is what my grandmother was called, too. She had a boat and a horse.",
    "Call me Quimperline, and tell me about the weather on the way to the islands.",
]


async def say(service, who, *texts):
    answers = [(await service.turn(text, who)).answer for text in texts]
    await service.settle()
    return answers[-1]


async def everything(service, who):
    """All that is stored of an owner, as one text."""
    return str(await service.records.export(who.owner)) + "".join(
        str(one) for one in await service.records.list_records(who.owner, standings=tuple(Standing))
    )


@pytest.mark.parametrize("mode", [MemoryMode.LOCAL, MemoryMode.INCOGNITO])
async def test_a_name_that_was_forgotten_is_told_by_nothing(open_layers, mode):
    service = await open_layers(mode=mode)
    first, second = await service.who("ann", "first"), await service.who("ann", "second")
    await say(service, first, *TALK)
    await service.end(first, EndReason.EXPLICIT)
    await say(service, second, TALK[0], "I live in Oslo.")
    answer = await say(service, second, "Forget my name, please.")
    assert answer.startswith("Forgotten:")
    assert "quimperline" not in (await everything(service, second)).lower()
    await service.end(second, EndReason.EXPLICIT)
    assert "quimperline" not in (await everything(service, second)).lower()
    third = await service.who("ann", "third")
    assert "Quimperline" not in await say(service, third, "What is my name?")
    assert "Oslo" in await say(service, third, "What do you know about me?")


@pytest.mark.parametrize("wish", ["Forget that my manager is Ben.", "Forget who my manager is."])
async def test_with_a_value_that_is_forgotten_in_words_goes_the_one_that_it_had_replaced(open_layers, wish):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "My manager is Ann.", "I work at Acme and live in Oslo.", "My manager is Ben now.")
    assert "Ben" in await say(service, who, "Who is my manager?")
    await say(service, who, "I no longer work at Acme, I'm at Birch now.", wish)
    known = await say(service, who, "What do you know about me?")
    assert "Ann" not in known
    assert "Acme" not in known
    assert "Oslo" in known


async def test_a_fact_is_forgotten_by_the_noun_of_what_was_told_by_its_adjective(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "My daughter Rita is allergic to peanuts.", "I live in Oslo.")
    assert (await say(service, who, "Please forget what I told you about Rita's allergy.")).startswith("Forgotten:")
    assert "peanuts" not in await say(service, who, "What do you know about me?")


async def test_what_was_forgotten_stays_so_after_a_restart(open_layers, tmp_path):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, *TALK, "Forget my name please")
    await service.close()
    service = await open_layers()
    assert "Quimperline" not in await say(service, who, "What is my name?")
    await service.close()
    assert not [file.name for file in (tmp_path / "layers").iterdir() if b"Quimperline" in file.read_bytes()]


async def test_what_waits_for_the_end_is_forgotten_too(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "Today I like rhubarb.", "Maybe I like rhubarb.", "Forget that I like rhubarb.")
    assert (await service.status(who.owner))["held"] == 0
    await say(service, who, "There is rhubarb on the table.")
    await service.end(who, EndReason.EXPLICIT)
    assert await service.records.list_records(who.owner) == []


async def test_a_turn_that_is_still_extracted_is_forgotten_too(open_layers, by_purpose):
    gate = asyncio.Event()

    async def slowly():
        await gate.wait()
        return (
            '{"facts": [{"category": "identity", "subject": "User", "predicate": "IS_NAMED", "object": "Ann",'
            ' "evidence_quote": "My name is Ann"}]}'
        )

    service = await open_layers(model=by_purpose(extract_semantic=lambda _: slowly()))
    who = await service.who("ann", "t")
    await service.turn("My name is Ann", who)
    wish = asyncio.create_task(service.turn("Forget my name", who))
    await asyncio.sleep(0)
    gate.set()
    assert "Forgotten" in (await wish).answer
    await service.settle()
    assert await service.records.list_records(who.owner) == []


async def test_the_former_value_is_forgotten_with_the_latest(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "I live in Oslo.", "I live in Bergen.", "Forget where I live.")
    assert await service.records.list_records(who.owner, standings=tuple(Standing)) == []


async def test_nobody_elses_memories_are_forgotten(open_layers):
    service = await open_layers()
    ann, bob = await service.who("ann", "t"), await service.who("bob", "t")
    await say(service, ann, "My name is Ann.")
    await say(service, bob, "My name is Bob.", "My name is Ann.")
    await say(service, ann, "Forget my name.")
    assert len(await service.records.list_records(bob.owner, standings=tuple(Standing))) == 2


async def test_what_is_not_found_is_offered_by_its_id(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "I live in Oslo.")
    (record,) = await service.records.list_records(who.owner)
    answer = await say(service, who, "Forget my Oslo bicycle.")
    assert "nothing to forget" in answer
    assert "I live in Oslo" in answer
    assert record.id[:8] in answer
    assert await say(service, who, f"Forget {record.id}") == (
        'Forgotten: "I live in Oslo.". Removed or shortened: 1 memory, 1 turn of an open session.'
    )
    assert await service.records.list_records(who.owner) == []


async def test_everything_goes_only_when_it_is_said_twice(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "I live in Oslo.")
    assert "Memories: 1." in await say(service, who, "Forget everything.")
    assert len(await service.records.list_records(who.owner)) == 1
    await say(service, who, "Forget everything for good.")
    assert await service.records.list_records(who.owner) == []


async def test_a_summary_that_held_only_this_is_deleted_with_it(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    fact = Fact(category="note", subject="User", predicate="HAS", object="a rhubarb farm", evidence_quote="my farm")
    only, other = (
        Arc(summary="The user said: I have a rhubarb farm."),
        Arc(summary="They met. A rhubarb farm is theirs."),
    )
    await service.records.remember(who.owner, None, [fact, only, other])
    await say(service, who, "Forget my rhubarb farm.")
    (left,) = await service.records.list_records(who.owner, standings=tuple(Standing))
    assert left.content.summary == "They met."


async def test_all_that_is_known_is_listed_by_layer(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    assert "nothing" in await say(service, who, "What do you know about me?")
    answer = await say(service, who, "I live in Oslo.", "From now on, answer in French.", "What do you know about me?")
    assert answer.splitlines() == [
        "This is what I remember of you.",
        "facts:",
        "- I live in Oslo.",
        "rules:",
        "- Answer in French.",
    ]


async def test_a_model_that_is_asked_what_it_knows_is_given_all(open_layers, by_purpose):
    model = by_purpose()
    service = await open_layers(model=model, min_recall=1)
    who = await service.who("ann", "t")
    words = ("tea", "boats", "horses")
    facts = [Fact(category="note", subject="User", predicate="HAS", object=one, evidence_quote=one) for one in words]
    await service.records.remember(who.owner, None, facts)
    await service.turn("What do you remember about me?", who)
    prompt = next(text for purpose, text in model.prompts if purpose == "chat")
    assert all(f"User HAS {one}" in prompt for one in words)
    assert len(await service.records.list_records(who.owner, [Layer.SEMANTIC])) == 3


async def test_where_somebody_no_longer_lives_is_forgotten_with_where_they_live(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    await say(service, who, "I don't live in Utrecht any more.", "I live in Oslo.", "Forget where I live.")
    assert "Utrecht" not in await everything(service, who)
