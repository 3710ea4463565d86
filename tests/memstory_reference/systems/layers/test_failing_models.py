"""A model that fails at one of its calls loses nothing: what was said waits for it, or is read by rules."""

import json

import pytest

from memstory.contract.models import BrokenReplyError, ChatModelUnavailableError
from memstory_reference.systems.layers.records import Arc, Layer
from memstory_reference.systems.layers.sessions import PATIENCE, EndReason, end_data

SAID = ["I live in Oslo.", "From now on, answer briefly."]
LONG = [
    "My sister is a pilot and flies to the northern islands every week of the year.",
    "Next month she wants to take me along, if the weather over there is good.",
    "There are northern lights to be seen, so a warm coat is what one needs.",
]
FACT = {
    "category": "location",
    "subject": "User",
    "predicate": "LIVES_IN",
    "object": "Oslo",
    "evidence_quote": "I live in Oslo",
}
RULE = {"rule": "Answer briefly.", "explicit": True, "evidence_quote": "answer briefly"}
RIGHT = {
    "extract_semantic": lambda prompt: json.dumps({"facts": [FACT] if "live in" in prompt else []}),
    "extract_procedural": lambda prompt: json.dumps({"rules": [RULE] if "briefly" in prompt else []}),
    "write_policy": '{"decision": "commit"}',
    "summarise": '{"summary": "The user lives in Oslo and wants short answers."}',
}
UNUSABLE = {
    "no JSON": "I would rather write prose.",
    "a refusal": "I'm sorry, but I can't help with that.",
    "nothing": "",
    "half a reply": '{"facts": [{"category": "location", "subject": "Us',
    "texts for objects": '{"facts": ["lives in Oslo"], "rules": ["answer briefly"]}',
    "a reply that broke off": BrokenReplyError("the connection broke"),
}
DOWN = None
CALLS = ["extract_semantic", "extract_procedural", "write_policy"]


async def talk(service, who, texts):
    for text in texts:
        await service.turn(text, who)
    await service.settle()


async def stored(service, who):
    rows = await service.records.list_records(who.owner)
    return {str(one.layer): one for one in rows}


async def waiting(service, who):
    return (await service.status(who.owner))["waiting"]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("reply", UNUSABLE)
async def test_what_no_model_reads_is_read_by_rules_when_the_session_ends(open_layers, by_purpose, call, reply):
    service = await open_layers(model=by_purpose(**{**RIGHT, call: UNUSABLE[reply]}))
    who = await service.who("ann", "t")
    await talk(service, who, SAID)
    report = await service.end(who, EndReason.EXPLICIT)
    kept = await stored(service, who)
    assert (kept["semantic"].content.object, kept["semantic"].count) == ("Oslo", 1)
    assert "briefly" in kept["procedural"].content.rule
    assert (report.waiting, await waiting(service, who)) == (0, 0)


@pytest.mark.parametrize("call", CALLS[:2])
async def test_turns_wait_for_a_model_that_is_down_and_the_session_with_them(open_layers, by_purpose, clock, call):
    model = by_purpose(**{**RIGHT, call: DOWN})
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    await talk(service, who, SAID)
    assert await waiting(service, who) == len(SAID)
    assert end_data(await service.end(who, EndReason.EXPLICIT)) == {"ended": False, "waiting": len(SAID)}
    model.answers |= RIGHT
    await clock.move(minutes=20)
    await service.settle()
    kept = await stored(service, who)
    assert (kept["semantic"].content.object, kept["semantic"].count, kept["procedural"].count) == ("Oslo", 1, 1)
    assert await service.buffer(who) is None
    assert await waiting(service, who) == 0


async def test_a_model_that_is_back_reads_what_waits_in_other_sessions_too(open_layers, by_purpose):
    model = by_purpose(**{**RIGHT, "extract_semantic": DOWN, "extract_procedural": DOWN})
    service = await open_layers(model=model)
    one, other = await service.who("ann", "one"), await service.who("ann", "other")
    await talk(service, one, SAID)
    model.answers |= RIGHT
    await talk(service, other, ["It rains."])
    assert set(await stored(service, one)) == {"semantic", "procedural"}
    assert await waiting(service, one) == 0


async def test_what_waits_is_read_when_the_memory_is_opened_again(open_layers, by_purpose):
    service = await open_layers(model=by_purpose(**{**RIGHT, "extract_semantic": DOWN, "extract_procedural": DOWN}))
    who = await service.who("ann", "t")
    await talk(service, who, SAID)
    await service.shut_down()
    assert await service.buffer(who) is not None
    await service.close()
    service = await open_layers(model=by_purpose(**RIGHT))
    await service.settle()
    assert set(await stored(service, who)) == {"semantic", "procedural"}
    assert await waiting(service, who) == 0


async def test_after_days_rules_read_what_waits_for_a_model_that_is_gone(open_layers, by_purpose, clock):
    service = await open_layers(model=by_purpose(**{**RIGHT, "extract_semantic": DOWN, "extract_procedural": DOWN}))
    who = await service.who("ann", "t")
    await talk(service, who, SAID)
    await clock.move(hours=1)
    await service.settle()
    assert await waiting(service, who) == len(SAID)
    await clock.move(seconds=PATIENCE.total_seconds())
    await service.settle()
    assert set(await stored(service, who)) == {"semantic", "procedural"}
    assert await waiting(service, who) == 0


async def test_the_person_hears_in_the_next_turn_how_many_turns_wait(open_layers, by_purpose):
    service = await open_layers(model=by_purpose(extract_semantic=DOWN))
    who = await service.who("ann", "t")
    await talk(service, who, SAID)
    answer = await service.turn("It rains.", who)
    assert any(note.startswith("model: ") and "2" in note for note in answer.notes)


async def test_a_turn_without_an_answer_is_kept_and_counts_once_when_it_is_said_again(open_layers, by_purpose):
    model = by_purpose(**{**RIGHT, "chat": DOWN})
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    with pytest.raises(ChatModelUnavailableError, match=r"^What you said is kept\. "):
        await service.turn(SAID[0], who)
    await service.settle()
    assert (await stored(service, who))["semantic"].content.object == "Oslo"
    model.answers["chat"] = "I see."
    assert (await service.turn(SAID[0], who)).answer == "I see."
    await service.settle()
    buffer = await service.buffer(who)
    assert [(one.user, one.assistant, one.extracted) for one in buffer.turns] == [(SAID[0], "I see.", True)]
    assert (await stored(service, who))["semantic"].count == 1


async def test_an_empty_reply_is_an_answer_in_words(open_layers, by_purpose):
    service = await open_layers(model=by_purpose(chat=" "))
    assert (await service.turn("Hello.", await service.who("ann", "t"))).answer.strip()


@pytest.mark.parametrize("reply", [*UNUSABLE.values(), DOWN])
async def test_a_fact_that_cannot_be_compared_is_stored_at_the_end_beside_the_others(open_layers, by_purpose, reply):
    moved = {**FACT, "object": "Bergen", "evidence_quote": "I live in Bergen"}
    found = {"Oslo": FACT, "Bergen": moved}
    model = by_purpose(
        extract_semantic=lambda prompt: json.dumps({"facts": [one for name, one in found.items() if name in prompt]}),
        reconcile=reply,
    )
    service = await open_layers(model=model)
    who = await service.who("ann", "t")
    await talk(service, who, ["I live in Oslo.", "I live in Bergen now."])
    await service.end(who, EndReason.EXPLICIT)
    rows = await service.records.list_records(who.owner, [Layer.SEMANTIC])
    assert {one.content.object for one in rows} == {"Oslo", "Bergen"}


@pytest.mark.parametrize("reply", [*UNUSABLE.values(), DOWN])
async def test_a_session_that_no_model_sums_up_is_summed_up_by_rules(open_layers, by_purpose, reply):
    service = await open_layers(model=by_purpose(summarise=reply))
    who = await service.who("ann", "t")
    await talk(service, who, LONG)
    await service.end(who, EndReason.EXPLICIT)
    (arc,) = await service.records.list_records(who.owner, [Layer.EPISODIC])
    assert isinstance(arc.content, Arc)
    assert arc.content.by == "rules"
    assert "northern lights" in arc.content.summary


async def test_a_turn_that_waits_is_forgotten_by_other_words_and_those_beside_it_stay(open_layers, by_purpose):
    service = await open_layers(model=by_purpose(**dict.fromkeys(("chat", *CALLS), DOWN)))
    who = await service.who("ann", "t")
    for said in ("My daughter Rita is allergic to peanuts.", "I live in Oslo."):
        with pytest.raises(ChatModelUnavailableError):
            await service.turn(said, who)
    await service.settle()
    answer = (await service.turn("Please forget what I told you about Rita's allergy.", who)).answer
    assert answer == "Forgotten: Rita's allergy. Removed or shortened: 1 turn of an open session."
    buffer = await service.buffer(who)
    assert ["peanuts" in str(turn) for turn in buffer.turns] == [False, False]
    assert buffer.turns[1].user == "I live in Oslo."
