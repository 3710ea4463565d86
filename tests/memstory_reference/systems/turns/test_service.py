from dataclasses import replace
from datetime import UTC, datetime

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.systems.turns.conditions import Conditions
from memstory_reference.systems.turns.exchange import jsonl, read_jsonl
from memstory_reference.systems.turns.turn import NewTurn

TEA = NewTurn(text="The kettle sings.", speaker="Ann", session="s", said_at="2024-01-07")


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"text": " "}, "text is blank"),
        ({"text": 7}, "must be text"),
        ({"text": "a\0b"}, "NUL"),
        ({"text": "x" * 100_001}, "at most 100000"),
        ({"kind": "diary"}, "allowed: turn, note"),
        ({"said_at": "yesterday"}, "ISO 8601"),
        ({"metadata": {"speaker": 7}}, "speaker must be text"),
        ({"metadata": {"x": float("nan")}}, "finite"),
        ({"metadata": {"x": "y" * 10_001}}, "at most 10000"),
        ({"metadata": ["x"]}, "must be an object"),
        ({"text": "My card is 4111 1111 1111 1111."}, "payment card"),
        ({"metadata": {"note": "My card is 4111 1111 1111 1111."}}, "payment card"),
    ],
)
async def test_what_is_wrong_is_refused_and_nothing_of_the_batch_is_kept(memory, changes, wrong):
    with pytest.raises(InputError, match=wrong):
        await memory.add("ann", [TEA, replace(TEA, **changes)])
    assert await memory.listed("ann") == []


@pytest.mark.parametrize("owner", ["", " ", 7, None, "a\nb", "x" * 513])
async def test_an_owner_who_is_no_name_is_refused(memory, owner):
    with pytest.raises(InputError, match="owner"):
        await memory.add(owner, [TEA])


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


@pytest.mark.parametrize("vector", [[0.0] * 64, [float("nan")] * 64])
async def test_a_vector_of_no_use_is_refused_before_anything_is_written(memory, embedder, vector):
    await memory.add("ann", [TEA])
    embedder.broken = vector
    with pytest.raises(UnavailableError, match="no usable vector"):
        await memory.add("ann", [replace(TEA, text="Another.")])
    embedder.broken = None
    assert len(await memory.listed("ann")) == 1


async def test_an_embedder_that_changes_its_dimension_is_refused(memory, embedder):
    await memory.add("ann", [TEA])
    embedder.broken = [1.0, 0.0]
    with pytest.raises(StoreConflictError, match="64 numbers"):
        await memory.add("ann", [TEA])
    assert len(await memory.listed("ann")) == 1


async def test_the_same_key_twice_in_one_call_is_one_turn(memory):
    first, second = await memory.add("ann", [replace(TEA, key="k"), replace(TEA, key="k", text="The kettle is cold.")])
    assert (first.turn.id, first.is_new, second.is_new) == (second.turn.id, True, False)
    assert [turn.text for turn in await memory.listed("ann")] == ["The kettle is cold."]


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
    assert len(await memory.listed("ann")) == 1


async def test_nothing_is_found_as_of_a_moment_before_it_was_said(memory):
    await memory.add("ann", [TEA])
    assert await memory.search("ann", "kettle", as_of=datetime(2024, 1, 1, tzinfo=UTC)) == []
    assert len(await memory.search("ann", "kettle", as_of=datetime(2024, 2, 1, tzinfo=UTC))) == 1


async def test_what_is_written_to_a_file_is_read_back_equal(memory):
    told = [replace(TEA, key="k", metadata={"room": [3, None]}), NewTurn(text="line\u2028end\nnext")]
    await memory.add("ann", told)
    await memory.add("bob", read_jsonl(jsonl(await memory.listed("ann"))))

    def known(turns):
        return [replace(turn, id="") for turn in turns]

    assert known(await memory.listed("bob")) == known(await memory.listed("ann"))


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
    assert (first.ranked.superseded_by, second.ranked.superseded_by) == (None, first.turn.id)


async def test_what_others_say_of_something_else_keeps_its_place(memory):
    page = NewTurn(text="The museum opens at ten.", metadata={"source": "web"})
    await memory.add("ann", [TEA, page, NewTurn(text="The garden has a bench.")])
    found = await memory.search("ann", "When is it that the museum opens?")
    assert (found[0].turn.text, found[0].ranked.superseded_by) == (page.text, None)


async def test_only_the_user_can_say_that_something_is_verified(memory):
    own, page = ({"verified": True, "source": source} for source in ("user", "web"))
    stored = await memory.add("ann", [replace(TEA, metadata=own), replace(TEA, metadata=page)])
    assert [one.turn.metadata for one in stored] == [own, {"source": "web"}]
