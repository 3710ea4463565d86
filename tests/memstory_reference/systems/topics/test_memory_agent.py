import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.target import Scope
from memstory_reference.bus import InProcessBus
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics.memory_agent import MemoryAgent

RESPONSE = {
    "query": "What is the capital of France?",
    "answer": "Paris.",
    "thinking": "A private thought about cheese.",
    "tool_calls": [{"name": "calculator"}, {"name": "calculator"}],
    "session_id": "s1",
    "query_id": "q1",
}


@pytest.fixture
def heard(memory):
    """Start an agent; return it and a function that publishes a response and settles."""

    async def start(service=memory.service):
        bus = InProcessBus()
        agent = MemoryAgent(service, bus)
        await agent.start()

        async def respond(payload, subject="response.generation", owner="ann"):
            await bus.publish(Envelope(subject=subject, payload=payload, publisher="GeneratorAgent", owner=owner))
            await bus.settle()

        return agent, bus, respond

    return start


async def test_a_response_becomes_one_engram_of_question_and_answer(heard, memory):
    _, _, respond = await heard()
    await respond(RESPONSE)
    (engram,) = await memory.service.list(Scope(user="ann"), ["episodic"])
    assert engram.text == "Q: What is the capital of France?\nA: Paris."
    assert engram.metadata == {
        "type": "episodic",
        "session_id": "s1",
        "query_id": "q1",
        "tool_calls": 2,
        "timestamp_utc": "2026-05-30T09:00:00.000000+00:00",
        "source": "conversation",
    }


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        ({**RESPONSE, "query": None}, "skipped_no_query"),
        ({key: value for key, value in RESPONSE.items() if key != "query"}, "skipped_no_query"),
        ({**RESPONSE, "query": "  "}, "skipped_no_query"),
        ({**RESPONSE, "query": {"$ne": ""}}, "skipped_no_query"),
        ({**RESPONSE, "answer": ""}, "skipped_no_answer"),
        ({**RESPONSE, "answer": "half \udc00"}, "refused"),
    ],
)
async def test_what_lacks_a_question_or_an_answer_is_counted_and_not_kept(heard, memory, payload, count):
    agent, _, respond = await heard()
    await respond(payload)
    assert agent.counts()[count] == 1
    assert agent.counts()["ingested"] == 0
    assert await memory.service.list(Scope(user="ann"), ["episodic"]) == []


@pytest.mark.parametrize(
    ("tools", "is_recall"),
    [
        (["search_memory"], True),
        (["calculator", "memory_recall"], True),
        (["recall_topic"], True),
        (["save_topic"], False),
    ],
)
async def test_an_answer_that_looked_something_up_is_marked_as_a_recall(heard, memory, tools, is_recall):
    _, _, respond = await heard()
    await respond({**RESPONSE, "tool_calls": [{"name": name} for name in tools]})
    (engram,) = await memory.service.list(Scope(user="ann"), ["episodic"])
    assert engram.metadata.get("is_recall", False) is is_recall


SECRETS = [
    {**RESPONSE, "query": "My card is 4111 1111 1111 1111, please book."},
    {**RESPONSE, "answer": "Your key is ghp_0123456789abcdefghijABCDEFGHIJ."},
]


@pytest.mark.parametrize("payload", SECRETS)
async def test_a_turn_with_a_secret_becomes_no_engram_and_is_counted(heard, make_memory, caplog, payload):  # SEC-12
    memory = make_memory(secrets="refuse")
    agent, _, respond = await heard(memory.service)
    await respond(payload)
    assert await memory.service.list(Scope(user="ann"), ["episodic"]) == []
    assert (agent.counts()["skipped_secret"], agent.counts()["ingested"]) == (1, 0)
    assert memory.embedder.data()["calls"] == 0
    assert "it holds the" in caplog.text
    assert not any(secret in caplog.text for secret in ("4111", "ghp_"))


@pytest.mark.parametrize(("keep_pins", "kept"), [(True, "Q: My PIN is 4711.\nA: Paris."), (False, None)])
async def test_a_pin_is_the_operators_choice(heard, make_memory, vectors, keep_pins, kept):
    told = "Q: My PIN is 4711.\nA: Paris."
    vectors |= {told: [1, 0], told.replace("4711", "[left out: a PIN]"): [1, 0]}
    chosen = make_memory(keep_pins=keep_pins)
    _, _, respond = await heard(chosen.service)
    await respond({**RESPONSE, "query": "My PIN is 4711."})
    assert [one.text for one in await chosen.service.list(Scope(user="ann"), ["episodic"])] == [
        kept or told.replace("4711", "[left out: a PIN]")
    ]


async def test_the_agent_hears_responses_alone_and_publishes_nothing(heard, memory):
    _, bus, respond = await heard()
    await respond(RESPONSE, subject="query.received")
    assert await memory.service.list(Scope(user="ann"), ["episodic"]) == []
    await respond(RESPONSE)
    assert [one.publisher for one in bus.log()] == ["GeneratorAgent", "GeneratorAgent"]


async def test_an_embedder_that_is_down_costs_one_engram_and_no_more(heard, memory):
    agent, bus, respond = await heard()
    memory.switch.mode = "down"
    await respond(RESPONSE)
    memory.switch.mode = "ok"
    await respond(RESPONSE)
    assert (agent.counts()["failed"], agent.counts()["ingested"], bus.failures) == (1, 1, 0)


async def test_nobody_waits_for_the_engram(heard, memory):
    _, bus, _ = await heard()
    gate, embed = asyncio.Event(), memory.switch.inner.embed

    async def slow(texts, purpose):
        await gate.wait()
        return await embed(texts, purpose)

    memory.switch.inner.embed = slow
    await bus.publish(
        Envelope(subject="response.generation", payload=RESPONSE, publisher="GeneratorAgent", owner="ann")
    )
    assert await memory.service.count("ann", "episodic") == 0
    gate.set()
    await bus.settle()
    assert await memory.service.count("ann", "episodic") == 1


async def test_after_stop_the_agent_hears_nothing(heard, memory):
    agent, _, respond = await heard()
    await agent.stop()
    await respond(RESPONSE)
    assert await memory.service.list(Scope(user="ann"), ["episodic"]) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(list(RESPONSE)), JSON), st.text(max_size=5))
def test_whatever_is_published_the_agent_goes_on(heard, payload, owner):
    async def scenario():
        agent, bus, respond = await heard()
        before = agent.counts()
        await respond({**RESPONSE, **payload}, owner=owner)
        # A text that has no fixed vector is refused as well; nothing but the counts may show it.
        assert sum(agent.counts().values()) == sum(before.values()) + 1
        assert bus.failures == 0

    asyncio.run(scenario())
