import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory_reference.systems.manager.agent import SPECS, ManagerTools
from memstory_reference.systems.manager.memories import MemoryType

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
