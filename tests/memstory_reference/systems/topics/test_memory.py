import asyncio
import re
from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory.contract.models import ChatModelUnavailableError, Reply, ToolRequest
from memstory.contract.target import Scope
from memstory.models.scripted_chat import ScriptedChat
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics.memory import TopicsMemory
from memstory_reference.systems.topics.settings import TopicsSettings

PRIVATE = "Plimquart"
ANN = Scope(user="ann", session="s1")
FACT = f"My cat is {PRIVATE}."
TURNS = ("Q: query\nA: Noted.", "Q: query\nA: (No answer came.)", f"Q: {FACT}\nA: Noted.")
RULES = [{"reply": "Noted."}]


class StillClock:
    def now(self):
        return datetime(2026, 5, 30, 9, 0, tzinfo=UTC)

    async def sleep_until(self, moment):
        raise NotImplementedError


@pytest.fixture
def make_system():
    def make(chat=None, **changes):
        numbers = count()
        clock, embedder = StillClock(), FixedVectors({text: [1, 0] for text in (PRIVATE, FACT, "query", *TURNS)})

        def new_id():
            return f"n{next(numbers)}"

        settings = TopicsSettings.default().merge({"min_score": embedder.profile.min_score, **changes}, "test")
        store = ExactStore(model="fixed-2", dimension=2)
        return TopicsMemory(
            settings=settings,
            vectors=store,
            embedder=embedder,
            clock=clock,
            new_id=new_id,
            chat=chat or ScriptedChat(RULES),
        )

    return make


async def test_when_open_returns_every_tool_is_announced_and_can_be_called(make_system):
    # L-25, LF-14: `open` waits for the announcements, and the very next line may call.
    system = make_system()
    await system.open()
    assert [tool.name for tool in await system.tools()][:4] == [
        "save_topic",
        "recall_topic",
        "save_memory",
        "search_memory",
    ]
    outcome = await system.tool("save_topic", {"topic": "user.x", "content": PRIVATE}, ANN, "Critic")
    assert outcome.result == "Memory saved: user.x"
    await system.close()


async def test_closing_finishes_the_engram_of_the_last_answer_and_releases_the_store(make_system):
    system = make_system()
    await system.open()
    await system.say("query", ANN)
    await system.close()
    assert system.bus.failures == 0
    with pytest.raises(UnavailableError, match="closed"):
        await system.list(ANN)


async def test_a_system_that_is_closed_has_no_tools_and_hears_nothing(make_system):
    system = make_system()
    await system.open()
    await system.close()
    assert list(await system.tools()) == []
    outcome = await system.tool("recall_topic", {"topic": "user.x"}, ANN, "Critic")
    assert outcome.error == "there is no tool named 'recall_topic'; there are: none."


async def test_the_status_counts_without_content(make_system):
    system = make_system()
    await system.open()
    await system.say("query", ANN)
    await system.settle()
    status = await system.inspect("status", {}, ANN)
    assert (status["topics"], status["episodic"], status["ingested"], status["chat"]) == (
        0,
        1,
        1,
        "scripted by the story",
    )
    assert (await system.inspect("status", {}, Scope(user="bob")))["episodic"] == 0
    assert "Noted." not in str(status)
    await system.close()


class FailingChat:
    """A model that fails, after it has called `tool` where there is one."""

    name = "made for a test"

    def __init__(self, *asked):
        self.asked = list(asked)

    async def chat(self, _):
        if self.asked:
            return Reply(content="", tool_requests=[self.asked.pop()])
        raise ChatModelUnavailableError("the model is down; start it by: ollama serve")


@pytest.mark.parametrize(
    ("said", "beginning", "kept"),
    [
        ("query", "What you said is kept. the model is down", ["Q: query\nA: (No answer came.)"]),
        ("How are you?", "the model is down", []),
        ("unheard of", "What you said is not kept. the model is down", []),
    ],
)
async def test_where_the_model_fails_the_error_begins_with_whether_what_was_said_is_kept(
    make_system, said, beginning, kept
):
    # The embedder has no vector of "unheard of", as one has none that is down.
    system = make_system(FailingChat())
    await system.open()
    with pytest.raises(ChatModelUnavailableError, match=f"^{re.escape(beginning)}"):
        await system.say(said, ANN)
    await system.settle()
    assert [one.text for one in await system.list(Scope(user="ann"), ["episodic"])] == kept
    await system.close()


async def test_where_the_model_fails_after_it_forgot_something_the_turn_is_not_kept_and_the_talk_forgets_it_too(
    make_system,
):
    forget = ToolRequest(name="forget_memory", arguments={"topic": "user.x"})
    system = make_system(FailingChat(forget))
    await system.open()
    await system.write_topic("ann", "user.x", PRIVATE)
    with pytest.raises(ChatModelUnavailableError, match=r"^the model is down"):
        await system.say("Forget my x, Plimquart.", ANN)
    await system.settle()
    assert await system.list(Scope(user="ann"), ["episodic"]) == await system.list(Scope(user="ann"), ["topic"]) == []
    await system.close()


async def test_two_questions_over_the_bus_at_once_do_not_wait_for_each_other_where_the_model_fails(make_system):
    system = make_system(FailingChat())
    await system.open()
    for session in ("s1", "s2"):
        payload = {"query": "query", "session_id": session}
        await system.bus.publish(Envelope(subject="query.received", payload=payload, publisher="Critic", owner="ann"))
    async with asyncio.timeout(20):
        await system.settle()
    assert (len(await system.list(Scope(user="ann"), ["episodic"])), system.bus.refusals) == (2, 2)
    await system.close()


async def test_what_was_told_over_the_bus_and_is_not_answered_yet_is_forgotten_with_the_rest(make_system):
    gate, is_asked = asyncio.Event(), asyncio.Event()

    class SlowChat:
        name = "slow"

        async def chat(self, _request):
            is_asked.set()
            await gate.wait()
            return Reply(content="Noted.")

    system = make_system(SlowChat())
    await system.open()
    entry_id = await system.write_topic("ann", "user.cat", FACT)
    payload = {"query": FACT, "session_id": "s1"}
    await system.bus.publish(Envelope(subject="query.received", payload=payload, publisher="Critic", owner="ann"))
    await is_asked.wait()
    forgetting = asyncio.create_task(system.forget(entry_id, ANN))
    for _ in range(8):
        await asyncio.sleep(0)
    gate.set()
    await forgetting
    await system.settle()
    assert await system.list(ANN) == []
    await system.close()


async def test_a_model_that_was_asked_over_the_bus_forgets_by_its_tool(make_system):
    class Chat(FailingChat):
        async def chat(self, request):
            return await super().chat(request) if self.asked else Reply(content="Done.")

    system = make_system(Chat(ToolRequest(name="forget_memory", arguments={"topic": "user.x"})))
    await system.open()
    await system.write_topic("ann", "user.x", PRIVATE)
    payload = {"query": "query", "session_id": "s1"}
    await system.bus.publish(Envelope(subject="query.received", payload=payload, publisher="Critic", owner="ann"))
    async with asyncio.timeout(20):
        await system.settle()
    assert await system.list(ANN) == []
    await system.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["query", "user.name"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=5,
)
SUBJECTS = st.sampled_from(
    [
        *(f"tool.request.{tool}" for tool in ("save_topic", "recall_topic", "save_memory", "search_memory")),
        "response.generation",
        "query.received",
        "tool.result.save_topic",
        "tool.schema",
    ]
) | st.text(max_size=12)
PAYLOADS = JSON | st.fixed_dictionaries(
    {}, optional={"args": JSON, "query": JSON, "session_id": JSON, "answer": JSON, "tool": JSON}
)


async def _publish_anything(system, subject, payload, owner, request_id):
    await system.open()
    await system.tool("save_topic", {"topic": "user.name", "content": PRIVATE}, Scope(user="bob"))
    last = system.bus.published
    try:
        envelope = Envelope(subject=subject, payload=payload, publisher="fuzz", owner=owner, request_id=request_id)
        await system.bus.publish(envelope)
    except InputError:
        assert system.bus.published == last
    await system.settle()
    assert system.bus.failures == 0
    answers = [one for one in system.bus.log(last) if one.publisher != "fuzz"]
    assert all(PRIVATE not in str(one.payload) and one.owner == owner for one in answers)
    assert await system.recall_topic("bob", "user.name") == PRIVATE
    await system.close()


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(SUBJECTS, PAYLOADS, st.sampled_from(["ann", "", "bob.x"]), st.none() | st.text(max_size=5))
def test_whatever_is_published_breaks_nothing_and_reaches_no_other_owner(make_system, subject, payload, owner, request):
    asyncio.run(_publish_anything(make_system(), subject, payload, owner, request))


@pytest.mark.slow
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(SUBJECTS, PAYLOADS, st.sampled_from(["ann", "", "bob.x"]), st.none() | st.text(max_size=5))
def test_ten_thousand_envelopes_break_nothing(make_system, subject, payload, owner, request_id):
    asyncio.run(_publish_anything(make_system(), subject, payload, owner, request_id))
