import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memstory.contract.target import Scope
from memstory_reference.bus import InProcessBus
from memstory_reference.bus.subjects import tool_request
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics.bus_tools import call_tool
from memstory_reference.systems.topics.tools import topic_tools

SINGLE = ["save_topic", "recall_topic", "save_memory", "search_memory"]
ASKED_FOR = ["list_memories", "forget_memory", "rate_memory"]


def served(memory, bus, toolset):
    return topic_tools(memory.service, replace(memory.service.settings, toolset=toolset), bus)


@pytest.fixture
def serve(memory):
    """Serve a toolset; return a function that calls a tool as an agent of the bus."""

    async def start(toolset):
        bus = InProcessBus()
        await served(memory, bus, toolset).start()

        async def call(name, args, owner="ann", session_id="s1"):
            request = Envelope(
                subject=tool_request(name),
                payload={"args": args, "session_id": session_id},
                publisher="CriticAgent",
                owner=owner,
                request_id=memory.new_id(),
            )
            return await call_tool(bus, request, timeout_seconds=5)

        return call

    return start


@pytest.mark.parametrize(("toolset", "names"), [("single", SINGLE), ("dual", ["memory_recall", "memory_save"])])
def test_a_toolset_is_four_tools_or_two_and_those_that_people_ask_for(memory, toolset, names):
    # LF-1
    tools = served(memory, InProcessBus(), toolset).specs
    assert [tool.name for tool in tools] == [*names, *ASKED_FOR]
    for tool in tools:
        Draft202012Validator.check_schema(tool.parameters)
        assert tool.parameters["type"] == "object"
        assert all(one["description"] for one in tool.parameters["properties"].values())


def test_the_schemas_require_what_the_calls_need(memory):
    # LF-3
    tools = [tool for toolset in ("single", "dual") for tool in served(memory, InProcessBus(), toolset).specs]
    assert {tool.name: tool.parameters.get("required", []) for tool in tools} == {
        "save_topic": ["topic", "content"],
        "recall_topic": ["topic"],
        "save_memory": ["content"],
        "search_memory": ["query"],
        "memory_recall": [],
        "memory_save": ["topic", "content"],
        "list_memories": [],
        "forget_memory": [],
        "rate_memory": ["id", "value"],
    }


def test_the_descriptions_say_when_to_call(memory):
    described = {
        tool.name: tool.description
        for toolset in ("single", "dual")
        for tool in served(memory, InProcessBus(), toolset).specs
    }
    assert described["save_topic"] == ("User asks to remember a preference, rule, or fact permanently across sessions")
    assert described["search_memory"].endswith("when no exact key is known — search by meaning")
    assert described["memory_recall"].startswith("Retrieve from memory. Two modes: (1) topic lookup — pass topic key")
    assert "Example: memory_save(topic='user.name', content='Richard')." in described["memory_save"]


async def test_a_saved_topic_is_confirmed_and_recalled_in_the_exact_words(serve):
    call = await serve("single")
    assert (await call("save_topic", {"topic": " User.Language", "content": "Elixir"})).result == (
        "Memory saved: user.language"
    )
    assert (await call("recall_topic", {"topic": "user.language"})).result == "[Memory: user.language] Elixir"
    assert (await call("recall_topic", {"topic": "user.lang"})).result == "No memories found."


async def test_a_note_is_found_by_search_with_the_day_it_was_made(serve, memory):
    call = await serve("single")
    assert (await call("search_memory", {"query": "query"})).result == "No memories found."
    assert (await call("save_memory", {"content": "near"})).result == "Memory saved."
    memory.clock.advance(days=1)
    assert (await call("search_memory", {"query": "query"})).result == (
        "[Memory recall — 2026-05-31]\n1. (relevance: 0.90) 2026-05-30 near"
    )
    (note,) = await memory.service.list(Scope(user="ann"), ["episodic"])
    assert (note.metadata["session_id"], note.metadata["source"]) == ("s1", "agent")
    assert await memory.service.list(Scope(user="ann"), ["topic"]) == []


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"topic": "user.language"}, "[Memory: user.language] Elixir"),
        ({"query": "query"}, "[Memory recall — 2026-05-30]\n1. (relevance: 0.90) 2026-05-30 near"),
        ({"topic": "user.language", "query": "query"}, "[Memory: user.language] Elixir"),
        ({"topic": "", "query": "query"}, "[Memory recall — 2026-05-30]\n1. (relevance: 0.90) 2026-05-30 near"),
        ({"topic": None, "query": "query"}, "[Memory recall — 2026-05-30]\n1. (relevance: 0.90) 2026-05-30 near"),
        ({"topic": "user.language", "query": None}, "[Memory: user.language] Elixir"),
        ({"topic": "user.unknown", "query": "query"}, "No memories found."),
    ],
)
async def test_the_dual_tool_takes_the_topic_if_it_says_something_and_else_the_query(serve, memory, args, expected):
    call = await serve("dual")
    await call("memory_save", {"topic": "user.language", "content": "Elixir"})
    await memory.service.write_episodic("ann", "near", {})
    assert (await call("memory_recall", args)).result == expected


@pytest.mark.parametrize("args", [{}, {"topic": " ", "query": ""}, {"topic": None}])
async def test_the_dual_tool_without_either_argument_names_both(serve, args):
    outcome = await (await serve("dual"))("memory_recall", args)
    assert outcome.result is None
    assert "'topic'" in outcome.error
    assert "'query'" in outcome.error


@pytest.mark.parametrize(
    ("tool", "args", "named"),
    [
        ("recall_topic", {"topic": {"$ne": ""}}, "topic must be string, not object"),
        ("search_memory", {"query": {"$ne": ""}}, "query must be string, not object"),
        ("save_topic", {"topic": "user.name", "content": {"$set": "Eve"}}, "content must be string, not object"),
        ("save_topic", {"topic": "user.name"}, "content is missing"),
        ("save_topic", {"topic": "user.name", "content": None}, "content is missing"),
        ("save_topic", {"topic": "feedback.q1", "content": "good"}, "user.*, project.* or constraint.*"),
        ("search_memory", {"query": "query", "owner": "bob"}, "'owner' is not an argument"),
        ("search_memory", {"query": " "}, "query is blank"),
        ("save_memory", {"content": True}, "content must be string, not boolean"),
        ("save_memory", [], "the arguments must be an object, not array"),
        ("save_memory", None, "the arguments must be an object, not null"),
    ],
)
async def test_a_wrong_argument_is_an_error_in_words_and_changes_nothing(serve, memory, tool, args, named):
    outcome = await (await serve("single"))(tool, args)
    assert outcome.result is None
    assert named in outcome.error
    assert await memory.service.count("ann", "topic") == await memory.service.count("ann", "episodic") == 0


async def test_the_prose_names_are_aliases_in_the_dual_set_alone(serve, memory):
    # LF-2, X-9
    dual = await serve("dual")
    assert (await dual("save_memory", {"topic": "user.name", "content": "Elixir"})).result == "Memory saved: user.name"
    assert (await dual("recall_memory", {"topic": "user.name"})).result == "[Memory: user.name] Elixir"
    single = await serve("single")
    assert (await single("save_memory", {"content": "near"})).result == "Memory saved."
    assert "no tool" in (await single("recall_memory", {"topic": "user.name"})).error
    assert [one.text for one in await memory.service.list(Scope(user="ann"), ["episodic"])] == ["near"]


async def test_a_tool_says_so_while_the_embedder_is_down_but_recalls_topics(serve, memory):
    call = await serve("single")
    await call("save_topic", {"topic": "user.name", "content": "Elixir"})
    memory.switch.mode = "down"
    for name, args in (
        ("search_memory", {"query": "query"}),
        ("save_memory", {"content": "near"}),
        ("save_topic", {"topic": "user.name", "content": "Rust"}),
    ):
        outcome = await call(name, args)
        assert outcome.error == "Memory unavailable: the embedder is down; start it"
    assert (await call("recall_topic", {"topic": "user.name"})).result == "[Memory: user.name] Elixir"


async def test_a_store_of_another_dimension_is_said_to_be_unavailable(serve, memory):
    call = await serve("single")
    memory.store.dimension = 768
    assert (await call("save_memory", {"content": "near"})).error.startswith("Memory unavailable: ")


async def test_twenty_agents_at_once_get_each_their_own_answer_and_owner(serve):
    call = await serve("single")
    owners = [f"owner-{n}" for n in range(20)]
    await asyncio.gather(
        *(call("save_topic", {"topic": "user.name", "content": "Elixir"}, owner=one) for one in owners[::2])
    )
    outcomes = await asyncio.gather(*(call("recall_topic", {"topic": "user.name"}, owner=one) for one in owners))
    assert [one.result for one in outcomes] == ["[Memory: user.name] Elixir", "No memories found."] * 10


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["user.name", "query"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
ARGUMENTS = JSON | st.dictionaries(
    st.sampled_from(["topic", "content", "query", "owner", "where", "type"]), JSON | st.just({"$ne": ""}), max_size=4
)


async def _fuzz(serve, toolset, tool, args):
    call = await serve(toolset)
    await call("save_topic" if toolset == "single" else "memory_save", {"topic": "user.name", "content": "Rust"}, "bob")
    outcome = await call(tool, args)
    assert (outcome.result is None) != (outcome.error is None)
    assert "Rust" not in outcome.text
    assert "Traceback" not in outcome.text
    assert "the tool failed" not in outcome.text


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(tool=st.sampled_from(SINGLE), args=ARGUMENTS)
def test_whatever_the_arguments_no_tool_breaks_or_tells_of_another_owner(serve, tool, args):
    asyncio.run(_fuzz(serve, "single", tool, args))


@pytest.mark.slow
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(tool=st.sampled_from([*SINGLE, "memory_recall", "memory_save"]), args=ARGUMENTS)
def test_ten_thousand_arguments_break_no_tool(serve, tool, args):
    asyncio.run(_fuzz(serve, "single" if tool in SINGLE else "dual", tool, args))


async def test_a_request_without_an_id_is_answered_with_its_query_id(memory):
    bus, answers = InProcessBus(), []
    await served(memory, bus, "single").start()

    async def heard(envelope):
        answers.append(envelope)

    await bus.subscribe("tool.result.*", heard, name="ReflectionAgent")
    request = Envelope(
        subject=tool_request("save_topic"),
        payload={"args": {"topic": "user.name", "content": "Elixir"}, "query_id": "q7"},
        publisher="ReflectionAgent",
        owner="ann",
    )
    await bus.publish(request)
    await bus.publish(replace(request, request_id="r1"))
    await bus.settle()
    assert [(one.request_id, one.owner, one.payload) for one in answers] == [
        ("q7", "ann", {"result": "Memory saved: user.name"}),
        ("r1", "ann", {"result": "Memory saved: user.name"}),
    ]
