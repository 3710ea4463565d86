from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memstory_reference.errors import InputError
from memstory_reference.systems.turns.memory import read_jsonl, turns_as_jsonl
from memstory_reference.systems.turns.settings import TurnsSettings
from memstory_reference.systems.turns.turn import Conditions, NewTurn

TEA = NewTurn(text="The kettle sings.", speaker="Ann", session="s", said_at="2024-01-07")


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"text": " "}, "text is blank"),
        ({"text": 7}, "must be text"),
        ({"text": "a\0b"}, "NUL"),
        ({"text": "x" * 1_000_001}, "at most 1000000"),
        ({"kind": "diary"}, "allowed: turn, note"),
        ({"said_at": "yesterday"}, "ISO 8601"),
        ({"metadata": {"speaker": 7}}, "speaker must be text"),
        ({"metadata": {"x": float("nan")}}, "finite"),
        ({"metadata": {"x": "y" * 10_001}}, "at most 10000"),
        ({"metadata": ["x"]}, "must be an object"),
    ],
)
async def test_what_is_wrong_is_refused_and_nothing_of_the_batch_is_kept(memory, changes, wrong):
    with pytest.raises(InputError, match=wrong):
        await memory.add("ann", [TEA, replace(TEA, **changes)])
    assert await memory.list_turns("ann") == []


CARD = "My card is 4111 1111 1111 1111."


@pytest.mark.parametrize("config", [TurnsSettings(secrets="refuse")])
@pytest.mark.parametrize("changes", [{"text": CARD}, {"metadata": {"note": CARD}}])
async def test_a_secret_is_refused_alone_and_says_so(memory, changes):
    stored = await memory.add("ann", [TEA, replace(TEA, **changes), replace(TEA, text="The kettle is cold.")])
    assert [one.refused is None for one in stored] == [True, False, True]
    assert "payment card" in stored[1].refused
    assert "4111" not in stored[1].refused
    assert [turn.id for turn in await memory.list_turns("ann")] == [stored[0].turn.id, stored[2].turn.id]


@pytest.mark.parametrize("config", [TurnsSettings(secrets="refuse")])
async def test_a_call_that_brings_nothing_but_secrets_is_refused(memory):
    with pytest.raises(InputError, match="payment card"):
        await memory.add("ann", [NewTurn(text=CARD), NewTurn(text=CARD)])
    assert await memory.owners() == []


async def test_what_was_forgotten_for_good_is_refused_alone(memory):
    (told,) = await memory.add("ann", [replace(TEA, text="The spare key lies under the mat.")])
    await memory.delete("ann", [told.turn.id], durable=True)
    stored = await memory.add("ann", [replace(TEA, text=told.turn.text), TEA])
    assert "forgotten for good" in stored[0].refused
    assert [turn.text for turn in await memory.list_turns("ann")] == [TEA.text]


async def test_a_turn_of_400_000_characters_is_kept_whole_and_found_by_its_beginning(memory):
    long = "The invoice of the plumber. " * 100 + "item and price " * 26_667
    others = [replace(TEA, text=f"The kettle {n} sings.") for n in range(20)]
    stored, *_ = await memory.add("ann", [replace(TEA, text=long), *others])
    found = await memory.search("ann", "plumber invoice", 1)
    assert (found[0].turn.id, found[0].turn.text) == (stored.turn.id, long)
    assert len(long) > 400_000


async def test_a_search_withholds_no_hit_and_says_how_sure_it_is(memory):
    await memory.add("ann", [TEA, replace(TEA, text="The garden has a bench.")])
    unknown, known = [await memory.search("ann", text) for text in ("quarterly tax deadline", "kettle sings")]
    assert (len(unknown), len(known)) == (2, 2)
    assert {hit.explain()["answerable"] for hit in known} == {max(hit.explain()["evidence"] for hit in known)}
    assert unknown[0].explain()["answerable"] < 0.5 < known[0].explain()["answerable"]
    assert await memory.search("ann", "quarterly tax deadline", min_score=0.5) == []


@pytest.mark.parametrize(
    ("fields", "speaker", "role"),
    [
        ({"speaker": "user"}, "user", "user"),
        ({"speaker": "Assistant"}, "Assistant", "assistant"),
        ({"metadata": {"role": "tool"}}, "tool", "tool"),
        ({"metadata": {"role": "assistant", "speaker": "Claude"}}, "Claude", "assistant"),
        ({"speaker": "Ann", "metadata": {"role": "captain"}}, "Ann", None),
        ({"metadata": {"source": "web"}}, None, "web"),
    ],
)
async def test_who_talks_with_an_agent_is_known_by_role_name_or_source(memory, fields, speaker, role):
    (stored,) = await memory.add("ann", [NewTurn(text="It is done.", **fields)])
    assert (stored.turn.speaker, stored.turn.role) == (speaker, role)


async def test_a_person_comes_before_the_assistants_but_for_what_they_said(memory):
    told = [
        ("Ann", "user", "The boiler needs a new valve."),
        ("Claude", "assistant", "The boiler needs a new valve, and a pump."),
        ("Grok", "assistant", "The boiler needs a new valve, or a clean one."),
    ]
    await memory.add(
        "ann",
        [NewTurn(text=text, speaker=who, session=who, metadata={"role": role}) for who, role, text in told],
    )
    asked = {
        "What does the boiler need?": {"Ann": 3.0, "Claude": 0, "Grok": 0},
        "What did you say of the boiler?": {"Ann": 0, "Claude": 4.0, "Grok": 4.0},
        "What did Grok say of the boiler?": {"Ann": 3.0, "Claude": 0, "Grok": 4.0},
    }
    for question, expected in asked.items():
        found = {hit.turn.speaker: hit.explain() for hit in await memory.search("ann", question)}
        assert {who: terms["person"] + terms["speaker"] for who, terms in found.items()} == expected, question


@pytest.mark.parametrize(
    "asked",
    [{"top_k": -1}, {"top_k": True}, {"min_score": 2}, {"as_of": datetime(2024, 1, 1)}],  # noqa: DTZ001
)
async def test_a_search_that_makes_no_sense_is_refused(memory, asked):
    with pytest.raises(InputError):
        await memory.search("ann", "kettle", **asked)


async def test_a_time_that_ends_before_it_begins_is_refused(memory):
    backwards = Conditions(since=datetime(2025, 1, 1, tzinfo=UTC), until=datetime(2024, 1, 1, tzinfo=UTC))
    with pytest.raises(InputError, match="lies after"):
        await memory.search("ann", "kettle", conditions=backwards)


async def test_the_same_key_twice_in_one_call_is_one_turn(memory):
    first, second = await memory.add("ann", [replace(TEA, key="k"), replace(TEA, key="k", text="The kettle is cold.")])
    assert (first.turn.id, first.is_new, second.is_new) == (second.turn.id, True, False)
    assert [turn.text for turn in await memory.list_turns("ann")] == ["The kettle is cold."]


async def test_an_update_keeps_what_it_does_not_name(memory):
    (stored,) = await memory.add("ann", [replace(TEA, key="k", metadata={"room": 3})])
    await memory.update("ann", stored.turn.id, NewTurn(text="The kettle is cold.", metadata={"room": 4}))
    turn = await memory.by_key("ann", "k")
    assert (turn.text, turn.speaker, turn.session, turn.said_at) == ("The kettle is cold.", "Ann", "s", "2024-01-07")
    assert turn.metadata == {"room": 4}


async def test_a_huge_word_is_remembered_and_found(memory):
    await memory.add("ann", [NewTurn(text="x" * 90_000), TEA])
    assert (await memory.search("ann", "kettle"))[0].turn.text == TEA.text


@pytest.mark.parametrize("question", ['"', "NEAR(", "a OR b*", "'; DROP TABLE turns", "-", "^x", "speaker:Ann"])
async def test_no_question_is_syntax(memory, question):
    await memory.add("ann", [TEA])
    await memory.search("ann", question, min_score=-1)
    assert len(await memory.list_turns("ann")) == 1


async def test_nothing_is_found_as_of_a_moment_before_it_was_said(memory):
    await memory.add("ann", [TEA])
    assert await memory.search("ann", "kettle", as_of=datetime(2024, 1, 1, tzinfo=UTC)) == []
    assert len(await memory.search("ann", "kettle", as_of=datetime(2024, 2, 1, tzinfo=UTC))) == 1


async def test_what_is_written_to_a_file_is_read_back_equal(memory):
    told = [replace(TEA, key="k", metadata={"room": [3, None]}), NewTurn(text="line\u2028end\nnext")]
    await memory.add("ann", told)
    await memory.add("bob", read_jsonl(turns_as_jsonl(await memory.list_turns("ann"))))

    def known(turns):
        return [replace(turn, id="") for turn in turns]

    assert known(await memory.list_turns("bob")) == known(await memory.list_turns("ann"))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "found list"),
        ('{"txt": "a"}', "unknown field 'txt'"),
        ('{"text": 7}', "text has the wrong type"),
        ("{}", "'text' is missing"),
    ],
)
def test_a_wrong_line_of_a_file_is_named(line, wrong):
    with pytest.raises(InputError, match=wrong):
        read_jsonl(f'{{"text": "a"}}\n{line}\n')


async def test_an_empty_list_is_added_as_nothing(memory):
    assert await memory.add("ann", []) == []
    assert await memory.owners() == []


@pytest.mark.parametrize("source", ["web", "tool", "assistant"])
@pytest.mark.parametrize("told", ["My bank account is now at Scamford.", "My bank account is at Scamford since May."])
async def test_what_the_user_said_comes_before_what_others_say_of_it(memory, source, told):
    said = NewTurn(text="My bank account is at Nordhaven.", said_at="2024-01-07")
    others = NewTurn(text=told, said_at="2025-01-07", metadata={"source": source})
    await memory.add("ann", [said, others, replace(TEA, speaker=None)])
    first, second = await memory.search("ann", "Where is my bank account now?", 2)
    assert (first.turn.text, second.turn.text) == (said.text, told)
    assert (first.outranked_by, second.outranked_by) == (None, first.turn.id)


async def test_what_others_say_of_something_else_keeps_its_place(memory):
    page = NewTurn(text="The museum opens at ten.", metadata={"source": "web"})
    await memory.add("ann", [TEA, page, NewTurn(text="The garden has a bench.")])
    found = await memory.search("ann", "When is it that the museum opens?")
    assert (found[0].turn.text, found[0].outranked_by) == (page.text, None)


async def test_only_the_user_can_say_that_something_is_verified(memory):
    own, page = ({"verified": True, "source": source} for source in ("user", "web"))
    stored = await memory.add("ann", [replace(TEA, metadata=own), replace(TEA, metadata=page)])
    assert [one.turn.metadata for one in stored] == [own, {"source": "web"}]
