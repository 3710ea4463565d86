import asyncio
import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.models import ChatModelUnavailableError, Reply, ToolRequest
from memstory.models.conversation import NO_ANSWER, ROUNDS
from memstory_reference.errors import InputError
from memstory_reference.input_checks import DEFAULT_LIMITS
from memstory_reference.systems.manager.agent import SPECS, ContextWindow, ManagerAgent, ManagerTools, WindowEntry
from memstory_reference.systems.manager.memories import MemoryType


class Model:
    """Replies in order, then with the last reply for ever; it keeps the prompts."""

    name = "of the test"

    def __init__(self, *replies):
        self.replies, self.prompts, self.tools = list(replies), [], []

    async def chat(self, request):
        self.prompts.append(list(request.messages))
        self.tools.append([tool.name for tool in request.tools])
        await asyncio.sleep(0)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return Reply(content=reply) if isinstance(reply, str) else reply


def calls(name, **arguments):
    return Reply(content="", tool_requests=[ToolRequest(name=name, arguments=arguments)])


@pytest.fixture
def make_loop(make_world):
    def make(*replies, **config):
        world = make_world(**config)
        model = Model(*replies)
        loop = ManagerAgent(manager=world.manager, chat=model, owner="ann", session="s1")
        return loop, model, world

    return make


def said(messages):
    return [(message.role, message.content) for message in messages[1:]]


async def test_the_prompt_is_system_then_window_then_the_users_words_once(make_loop):
    loop, model, _ = make_loop("Hello.")
    await loop.process("one")
    await loop.process("two")
    assert model.prompts[-1][0].role == "system"
    assert said(model.prompts[-1]) == [("user", "one"), ("assistant", "Hello."), ("user", "two")]


@pytest.mark.parametrize(("turns", "entries"), [(0, 0), (1, 2), (5, 10)])
async def test_the_window_holds_as_many_turns_as_it_was_given(make_loop, turns, entries):
    loop, model, _ = make_loop("Hello.", context_window_size=turns)
    for number in range(7):
        await loop.process(f"turn {number}")
    assert len(loop.window.entries) == entries
    assert said(model.prompts[-1])[-1] == ("user", "turn 6")
    assert sum(content == "turn 6" for _, content in said(model.prompts[-1])) == 1


async def test_a_finished_turn_is_stored_as_a_conversation_of_its_session(make_loop):
    loop, _, world = make_loop("They do.")
    await loop.process("Do bees fly?")
    (stored,) = await world.manager.memories("ann")
    assert (stored.memory_type, stored.content) == (MemoryType.CONVERSATION, "User: Do bees fly?\nAssistant: They do.")
    assert stored.metadata == {"session_id": "s1", "tool_calls": 0}


@pytest.mark.parametrize(
    ("told", "kept"), [("The bees are in Graz.", ["User: The bees are in Graz."]), ("Where are the bees?", [])]
)
async def test_a_turn_whose_model_fails_leaves_what_was_told_in_the_memory_and_nothing_in_the_window(
    make_loop, told, kept
):
    loop, model, world = make_loop("Hello.", ChatModelUnavailableError("away"), "Back again.")
    await loop.process("one")
    with pytest.raises(ChatModelUnavailableError, match="is kept" if kept else "away$"):
        await loop.process(told)
    assert [entry.content for entry in loop.window.entries] == ["one", "Hello."]
    stored = [one.content for one in await world.manager.memories("ann")]
    assert sorted(stored) == sorted([*kept, "User: one\nAssistant: Hello."])
    await loop.process("three")
    assert ("user", told) not in said(model.prompts[-1])


async def test_a_turn_that_is_cancelled_leaves_no_trace(make_loop):
    loop, _, world = make_loop("Hello.")
    turn = asyncio.create_task(loop.process("one"))
    await asyncio.sleep(0)
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    assert (loop.window.entries, await world.manager.count("ann")) == ((), 0)


async def test_a_tool_is_called_and_its_result_read(make_loop):
    loop, model, world = make_loop(calls("search_memories", query="bees"), "Bees are insects.")
    await world.manager.store("ann", "bees are insects", MemoryType.FACT)
    answer = await loop.process("What are bees?")
    (used,) = answer.tool_calls
    assert (used.name, used.result[0]["content"]) == ("search_memories", "bees are insects")
    assert json.loads(model.prompts[-1][-1].content)[0]["content"] == "bees are insects"
    assert model.tools[0] == ["search_memories", "store_memory", "forget_memory"]


async def test_a_wrong_tool_call_is_told_to_the_model_and_does_not_end_the_turn(make_loop):
    loop, model, _ = make_loop(calls("recall", topic="x"), calls("forget_memory", memory_id=5), "Sorry.")
    answer = await loop.process("Forget it.")
    assert answer.answer == "Sorry."
    assert "there is no tool named 'recall'" in answer.tool_calls[0].error
    assert "memory_id must be string" in answer.tool_calls[1].error
    assert "memory_id must be string" in model.prompts[-1][-1].content


async def test_a_model_that_never_stops_calling_tools_is_asked_for_its_answer(make_loop):
    loop, model, _ = make_loop(*[calls("search_memories", query="bees")] * ROUNDS, "Enough.")
    assert (await loop.process("What are bees?")).answer == "Enough."
    assert model.tools[-1] == []


async def test_an_empty_answer_becomes_words(make_loop):
    loop, _, _ = make_loop("  ")
    assert (await loop.process("Hello?")).answer == NO_ANSWER


async def test_a_memory_that_is_down_costs_no_answer_and_is_counted(make_loop, caplog):
    loop, _, world = make_loop("Hello.")
    world.embedder.is_down = True
    turn = await loop.process("one")
    assert turn.answer == "Hello."
    assert "not stored" in turn.notes[0]
    assert (loop.not_stored, await world.manager.count("ann")) == (1, 0)
    assert "a turn was not stored" in caplog.text


@pytest.mark.parametrize("text", ["", " \n", "x" * (DEFAULT_LIMITS.max_memory_characters + 1), "half \ud800"])
async def test_a_turn_that_says_nothing_or_too_much_is_refused(make_loop, text):
    loop, model, _ = make_loop("Hello.")
    with pytest.raises(InputError):
        await loop.process(text)
    assert (loop.window.entries, model.prompts) == ((), [])


async def test_a_turn_too_long_to_keep_whole_is_kept_in_part(make_loop):
    loop, _, world = make_loop("y" * DEFAULT_LIMITS.max_memory_characters)
    await loop.process("x")
    (stored,) = await world.manager.memories("ann")
    assert len(stored.content) == DEFAULT_LIMITS.max_memory_characters


async def test_turns_of_one_conversation_do_not_mix(make_loop):
    loop, _, _ = make_loop("Hello.")
    await asyncio.gather(*(loop.process(f"turn {number}") for number in range(5)))
    roles = [entry.role for entry in loop.window.entries]
    assert roles == ["user", "assistant"] * 5


async def test_what_is_forgotten_leaves_the_window_and_the_turn_that_asked_is_not_kept(make_loop):
    loop, model, world = make_loop("Fine.")
    await loop.process("my niece keeps goats")
    await loop.process("what a day")
    loop.forget([" my niece keeps goats "])
    assert [entry.content for entry in loop.window.entries] == ["what a day", "Fine."]
    fact = await world.manager.store("ann", "my niece keeps goats", MemoryType.FACT)
    model.replies = [calls("forget_memory", memory_id=fact.id), "Done."]
    assert (await loop.process("forget that my niece keeps goats")).answer == "Done."
    assert [entry.content for entry in loop.window.entries] == ["what a day", "Fine."]
    assert [one.content for one in await world.manager.memories("ann")] == ["User: what a day\nAssistant: Fine."]


async def test_a_short_fact_takes_along_no_turn_that_merely_holds_its_words(make_loop):
    loop, _, world = make_loop("Fine.")
    await loop.process("Vienna and Graz are towns")
    fact = await world.manager.store("ann", "Graz", MemoryType.FACT)
    assert await world.manager.forget_saying("ann", fact.id) == [fact]
    assert not await world.manager.forget_saying("bob", fact.id)


NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def entry(role, content):
    return WindowEntry(role=role, content=content, timestamp=NOON)


def filled(turns, size=5):
    window = ContextWindow(size)
    for number in range(1, turns + 1):
        window.add(entry("user", f"u{number}"))
        window.add(entry("assistant", f"a{number}"))
    return window


def contents(window):
    return [one.content for one in window.entries]


def test_six_turns_leave_the_last_five():
    assert contents(filled(6)) == ["u2", "a2", "u3", "a3", "u4", "a4", "u5", "a5", "u6", "a6"]


def test_in_the_middle_of_the_sixth_turn_no_answer_comes_first():
    window = filled(5)
    window.add(entry("user", "u6"))
    assert contents(window) == ["u2", "a2", "u3", "a3", "u4", "a4", "u5", "a5", "u6"]


def test_a_window_of_no_turns_keeps_nothing():
    assert contents(filled(3, size=0)) == []


def test_a_cleared_window_is_empty():
    window = filled(3)
    window.clear()
    assert contents(window) == []


def test_what_was_handed_out_does_not_change_with_the_window():
    window = filled(1)
    before = window.entries
    window.add(entry("user", "u2"))
    assert [one.content for one in before] == ["u1", "a1"]


@given(st.integers(0, 6), st.lists(st.sampled_from(["user", "assistant"]), max_size=40))
def test_a_window_never_holds_too_much_and_always_begins_with_the_user(size, roles):
    window = ContextWindow(size)
    for number, role in enumerate(roles):
        window.add(entry(role, str(number)))
        assert len(window.entries) <= 2 * size
        assert not window.entries or window.entries[0].role == "user"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = [name for spec in SPECS for name in spec.parameters["properties"]]


@pytest.fixture
def tools(manager):
    return ManagerTools(manager, "ann", "s1")


def test_there_are_three_tools_and_each_parameter_is_explained():
    assert [spec.name for spec in SPECS] == ["search_memories", "store_memory", "forget_memory"]
    for spec in SPECS:
        for schema in spec.parameters["properties"].values():
            assert schema["description"]


async def test_what_was_stored_is_found_with_an_id_by_which_it_is_forgotten(tools):
    stored = (await tools.call("store_memory", {"content": "bees are insects", "metadata": {"a": [1]}})).result
    assert set(stored) == {"id", "content", "type", "created_at"}
    (found,) = (await tools.call("search_memories", {"query": "bees are insects"})).result
    assert set(found) == {"id", "content", "type", "score", "created_at", "metadata"}
    assert (found["id"], found["type"], found["metadata"]) == (stored["id"], "fact", {"a": [1]})
    forgotten = [(await tools.call("forget_memory", {"memory_id": found["id"]})).result for _ in range(2)]
    assert forgotten == [{"success": True, "id": found["id"]}, {"success": False, "id": found["id"]}]


async def test_arguments_that_a_model_leaves_blank_are_as_if_left_out(tools):
    stored = await tools.call("store_memory", {"content": "bees", "memory_type": "", "metadata": None})
    found = await tools.call("search_memories", {"query": "bees", "memory_type": "", "limit": None})
    assert (stored.result["type"], len(found.result)) == ("fact", 1)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("store_memory", {"content": "x", "memory_type": "dream"}, "allowed: conversation, fact, context"),
        ("store_memory", {"content": " "}, "content is blank"),
        ("store_memory", {}, "content is missing"),
        ("store_memory", {"content": "x", "metadata": "none"}, "metadata must be object"),
        ("store_memory", {"content": "x", "metadata": {"created_at": "2001"}}, "'created_at' is reserved"),
        ("search_memories", {"query": {"$ne": ""}}, "query must be string"),
        ("search_memories", {"query": "x", "where": {}}, "'where' is not an argument"),
        ("search_memories", {"query": "x", "limit": -1}, "limit -1"),
        ("search_memories", {"query": "x", "limit": True}, "limit must be integer"),
        ("forget_memory", {"memory_id": ["a", "b"]}, "memory_id must be string"),
        ("forget_memory", "all", "must be an object"),
        ("get_user_profile", {}, "there is no tool named 'get_user_profile'"),
    ],
)
async def test_a_wrong_call_is_answered_in_words(tools, name, arguments, said):
    called = await tools.call(name, arguments)
    assert called.result is None
    assert said in called.error


async def test_no_tool_reaches_another_owners_memories(tools, manager):
    theirs = await manager.store("bob", "bees are insects", MemoryType.FACT)
    assert (await tools.call("search_memories", {"query": "bees are insects"})).result == []
    assert (await tools.call("forget_memory", {"memory_id": theirs.id})).result["success"] is False
    assert await manager.memories("bob") == [theirs]


async def test_a_memory_that_is_down_says_so(tools, world):
    world.embedder.is_down = True
    assert (await tools.call("search_memories", {"query": "bees"})).error.startswith("Memory unavailable: ")


async def test_a_context_that_a_tool_stores_belongs_to_its_session(tools, manager):
    await tools.call("store_memory", {"content": "bees", "memory_type": "context"})
    (stored,) = await manager.memories("ann")
    assert stored.metadata == {"session_id": "s1"}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.sampled_from(SPECS), arguments=st.dictionaries(st.sampled_from([*NAMES, "where", "owner"]), JSON))
async def test_whatever_a_model_makes_up_the_answer_is_a_result_or_words(tools, name, arguments):
    called = await tools.call(name.name, arguments)
    assert (called.result is None) != (called.error is None)
