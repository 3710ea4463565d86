"""What callers give is checked before anything is read or written, and nothing grows without a bound."""

import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.errors import InputError
from memstory_reference.systems.layers.records import Arc, Fact
from memstory_reference.systems.layers.sessions import EndReason, parse_reason
from memstory_reference.systems.layers.settings import parse_mode

OWNER = "user:ann"


def note(text):
    return Fact(category="note", subject="User", predicate="NOTED", object=text, evidence_quote=text)


WRONG = {
    "turn(None)": lambda service, who: service.turn(None, who),
    "turn(5)": lambda service, who: service.turn(5, who),
    "turn of blanks": lambda service, who: service.turn(" \n", who),
    "turn too long": lambda service, who: service.turn("x" * 100_001, who),
    "search(None)": lambda service, _: service.records.search(OWNER, None),
    "search too long": lambda service, _: service.records.search(OWNER, "x" * 3_000_000),
    "search(half)": lambda service, _: service.records.search(OWNER, "\ud800"),
    "search of nobody": lambda service, _: service.records.search("", "tea"),
    "search of a number": lambda service, _: service.records.search(5, "tea"),
    "remember(None)": lambda service, _: service.records.remember(OWNER, None, None),
    "remember([None])": lambda service, _: service.records.remember(OWNER, None, [None]),
    "remember(text)": lambda service, _: service.records.remember(OWNER, None, "tea"),
    "get(None)": lambda service, _: service.records.get(OWNER, None),
    "get({})": lambda service, _: service.records.get(OWNER, {}),
    "forget_records([None])": lambda service, _: service.records.forget_records(OWNER, [None]),
    "edit(None)": lambda service, _: service.records.edit(OWNER, None, note("tea")),
    "archive([])": lambda service, _: service.records.archive(OWNER, []),
    "list a huge number": lambda service, _: service.records.list_records(OWNER, limit=10**19),
    "list -1": lambda service, _: service.records.list_records(OWNER, limit=-1),
    "recall('yes')": lambda service, _: service.set_recall(OWNER, on="yes"),
    "feedback([])": lambda service, who: service._logs.give_feedback(who, ["helpful"]),
    "feedback(source)": lambda service, who: service._logs.give_feedback(who, "helpful", {}),
    "feedback(comment)": lambda service, who: service._logs.give_feedback(who, "helpful", "text", 5),
    "voice": lambda service, who: service.finalise_voice([(None, "x")], who),
    "who(5)": lambda service, _: service.who(5, "t"),
    "who(half)": lambda service, _: service.who("\ud800", "t"),
}


@pytest.mark.parametrize("call", WRONG)
async def test_a_wrong_argument_is_an_input_error(open_layers, call):
    service = await open_layers()
    who = await service.who("ann", "t")
    with pytest.raises(InputError):
        await WRONG[call](service, who)
    assert (await service.status(OWNER))["active_sessions"] == 0


@pytest.mark.parametrize("wrong", [None, 5, [], "soon", "\ud800"])
def test_names_that_are_none_are_input_errors(wrong):
    for parse in (parse_mode, parse_reason):
        with pytest.raises(InputError):
            parse(wrong)


async def test_an_id_that_no_text_can_be_is_nobodys(open_layers):
    service = await open_layers()
    assert await service.records.get(OWNER, "\ud800") is None
    assert (await service.records.forget_records(OWNER, ["\0", "../x"])).is_empty


async def test_a_turn_that_is_longer_than_a_query_is_answered(open_layers):
    service = await open_layers(max_query_characters=100)
    who = await service.who("ann", "t")
    await service.records.remember(who.owner, None, [note("The vault opens at noon.")])
    answer = await service.turn("When does the vault open? " + "word " * 1_000, who)
    assert "noon" in answer.context


async def test_a_prompt_holds_as_many_turns_as_its_window(open_layers, by_purpose):
    model = by_purpose()
    service = await open_layers(model=model, max_window_characters=25_000)
    who = await service.who("ann", "t")
    for number in range(4):
        await service.turn(f"turn{number} " + "word " * 2_000, who)
    model.prompts.clear()
    await service.turn("Hello", who)
    prompt = next(text for purpose, text in model.prompts if purpose == "chat")
    assert len(prompt) < 26_000
    assert [f"turn{number} " in prompt for number in range(4)] == [False, False, True, True]


async def test_what_the_memory_takes_of_a_prompt_is_bounded(open_layers):
    service = await open_layers(top_k=50)
    who = await service.who("ann", "t")
    notes = [note(f"vault {number} " + "word " * 3_900) for number in range(12)]
    await service.records.remember(who.owner, None, notes)
    context = (await service.turn("What about the vault?", who)).context
    assert 4_000 < len(context) < 25_000
    assert context.count("…") > 1


async def test_a_summary_is_asked_with_the_end_of_the_session(open_layers, by_purpose):
    model = by_purpose(summarise='{"summary": "They spoke.", "topics": []}')
    service = await open_layers(model=model, max_prompt_characters=1_000)
    who = await service.who("ann", "t")
    for number in range(4):
        await service.turn(f"turn{number} " + "word " * 300, who)
    await service.end(who, EndReason.EXPLICIT)
    (prompt,) = [text for purpose, text in model.prompts if purpose == "summarise"]
    assert len(prompt) < 1_600


async def test_what_waits_for_the_end_is_bounded(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    for number in range(3):
        said = " ".join(f"Maybe I like thing{number}{place}." for place in range(90))
        await service.turn(said, who)
    await service.settle()
    assert (await service.status(OWNER))["held"] == 200


@pytest.mark.parametrize("summary", ["", " ", "x" * 20_001, "half \ud800"])
async def test_a_summary_that_cannot_be_kept_is_dropped(open_layers, summary):
    service = await open_layers()
    (done,) = await service.records.remember(OWNER, None, [Arc(summary=summary)])
    assert done.outcome == "dropped"


async def test_a_setting_out_of_its_bounds_is_told(open_layers):
    service = await open_layers()
    with pytest.raises(MemstoryError, match="max_query_characters"):
        service.config.merge({"max_query_characters": 0}, "test")
