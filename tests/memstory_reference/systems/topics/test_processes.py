"""Memory, tools and agent as parts on one bus; the same over processes is in tests/e2e/test_processes.py."""

from datetime import UTC, datetime
from itertools import count

import pytest

from memstory.contract.errors import SetupError, UnavailableError
from memstory.contract.models import ChatModelUnavailableError, Reply, ToolRequest
from memstory.contract.target import Item, Query, Ref, Scope
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.bus import InProcessBus
from memstory_reference.bus.calls import Caller
from memstory_reference.errors import InputError
from memstory_reference.ports import EmbedderUnavailableError, Envelope
from memstory_reference.systems.topics import process as topics
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.process import AgentPart, MemoryPart, RemoteTopicsMemory, ToolsPart
from memstory_reference.systems.topics.settings import TopicsSettings

SETTINGS = TopicsSettings.default().merge({"min_score": 0.3, "tool_timeout_seconds": 5}, "test")
ANN = Scope(user="ann", session="s")
ANYWHERE = Scope(user="ann")
SAVE = {"tool": "save_topic", "args": {"topic": "User.X", "content": "tea"}}


class StillClock:
    def now(self):
        return datetime(2026, 5, 30, 9, 0, tzinfo=UTC)

    async def sleep_until(self, moment):
        raise NotImplementedError


class Vectors(FixedVectors):
    """Every text lies in the same place, or nowhere."""

    is_down = False

    async def embed(self, texts, purpose):
        if self.is_down:
            raise EmbedderUnavailableError("the embedder is down; start it")
        return await super().embed(["tea"] * len(texts), purpose)


class SayingChat:
    """A model of one tool call: it saves when it is asked to, and then repeats what the tool said."""

    name = "made for a test"

    async def chat(self, request):
        last = request.messages[-1]
        if last.role == "tool":
            return Reply(content=last.content)
        if last.content == "save it" and request.tools:
            return Reply(content="", tool_requests=[ToolRequest(name=SAVE["tool"], arguments=SAVE["args"])])
        return Reply(content="Noted.")


class Stage:
    """One bus, and parts that come and go."""

    def __init__(self):
        self.bus = InProcessBus()
        self.embedder = Vectors({"tea": [1, 0]})
        self.shown = []
        self._store = ExactStore(model="fixed-2", dimension=2)
        self._numbers = count()
        self.talk = RemoteTopicsMemory(
            agent=self.caller(topics.AGENT),
            memory=self.caller(topics.MEMORY),
            show_calls=self.shown.extend,
        )

    def new_id(self):
        return f"n{next(self._numbers)}"

    def caller(self, part):
        return Caller(bus=self.bus, part=part, new_id=self.new_id, name="test", timeout_seconds=5)

    async def memory(self):
        service = MemoryService(
            settings=SETTINGS, vectors=self._store, embedder=self.embedder, clock=StillClock(), new_id=self.new_id
        )
        return await self._started(MemoryPart(service, self.bus, self.new_id))

    async def tools(self):
        return await self._started(ToolsPart(self.bus, settings=SETTINGS, new_id=self.new_id))

    async def agent(self):
        return await self._started(AgentPart(self.bus, chat=SayingChat(), new_id=self.new_id, settings=SETTINGS))

    async def say(self, text):
        return await self.talk.say(text, ANN)

    async def _started(self, part):
        await part.start()
        await self.bus.settle()
        return part


@pytest.fixture
def stage():
    return Stage()


@pytest.mark.parametrize("order", [("memory", "tools", "agent"), ("agent", "tools", "memory")])
async def test_in_whatever_order_the_parts_start_a_turn_is_answered_and_remembered(stage, order):
    for part in order:
        await getattr(stage, part)()
    answer = await stage.say("save it")
    assert (answer.answer, answer.notes) == ("Memory saved: user.x", ())
    assert [(one.name, one.result) for one in stage.shown] == [("save_topic", "Memory saved: user.x")]
    await stage.talk.settle()
    memory = stage.talk
    assert [(one.key, one.text) for one in await memory.list(ANYWHERE, ["topic"])] == [("user.x", "tea")]
    (engram,) = await memory.list(ANYWHERE, ["episodic"])
    assert engram.text == "Q: save it\nA: Memory saved: user.x"
    status = await stage.talk.inspect("status", {}, ANN)
    assert (status["topics"], status["episodic"], status["chat"], len(status["tools"])) == (1, 1, SayingChat.name, 7)


async def test_the_memory_from_afar_is_the_memory(stage):
    await stage.memory()
    memory, bob = stage.talk, Scope(user="bob")
    (stored,) = (await memory.add([Item(text="tea", key="user.x")], ANN)).items
    assert (stored.key, stored.outcome) == ("user.x", "stored")
    topic = await memory.get(Ref(key="user.x"), ANN)
    assert topic == await memory.get(Ref(id=stored.id), ANN)
    assert await memory.get(Ref(key="user.x"), bob) is None
    (later,) = (await memory.add([Item(text="My x is coffee now.")], ANN)).items
    assert "My x is coffee now." in await memory.context(Query(text="user.x", kinds=["topic"]), ANN)
    assert await memory.delete(Ref(id=later.id), ANN)
    (noted,) = (await memory.add([Item(text="tea", metadata={"n": 1})], ANN)).items
    (found,) = await memory.search(Query(text="tea", top_k=3), ANYWHERE)
    assert (found.id, found.score, found.metadata["session_id"], found.metadata["n"]) == (noted.id, 1.0, "s", 1)
    assert await memory.feedback(Ref(id=noted.id), 1, ANN)
    assert not await memory.search(Query(text="tea"), bob)
    assert [await memory.delete(Ref(id=noted.id), who) for who in (bob, ANN)] == [False, True]
    assert not await memory.list(ANYWHERE, ["episodic"])
    assert await memory.get(Ref(id=noted.id), ANN) is None
    assert [one.id for one in (await memory.forget(stored.id, ANN)).gone] == [stored.id]


@pytest.mark.parametrize(
    ("act", "args"),
    [
        ("add", {"items": [{"text": "a", "key": "feedback.x"}]}),
        ("add", {"items": [{"text": "a", "key": {"$ne": ""}}]}),
        ("add", {"items": [{"text": "a", "metadata": {"type": "topic"}}]}),
        ("add", {"items": [{"text": "a", "metadata": ["type"]}]}),
        ("add", {"items": [{"text": "a", "owner": "bob"}]}),
        ("add", {"items": "a", "session": 1}),
        ("search", {"query": {"text": "a", "top_k": {"$gt": 0}}}),
        ("search", {}),
        ("get", {"ref": {"id": 7}}),
        ("delete", {"ref": {}}),
        ("delete", {"ref": {"durable": True}}),
        ("feedback", {"ref": {"id": "x"}, "value": "much"}),
        ("forget", {"memory_id": None}),
        ("list", {"kinds": 1}),
    ],
)
async def test_what_the_memory_does_not_take_it_refuses_from_afar_too(stage, act, args):
    # SEC-4, SEC-5: whoever can reach the bus can send anything.
    await stage.memory()
    with pytest.raises(InputError):
        await stage.caller("memory").call(act, "ann", **args)


async def test_nobody_forgets_for_good_from_afar(stage):
    await stage.memory()
    (stored,) = (await stage.talk.add([Item(text="tea")], ANN)).items
    assert await stage.talk.delete(Ref(id=stored.id, durable=True), ANN)
    assert (await stage.talk.add([Item(text="tea")], ANN)).items[0].outcome == "stored"


async def test_an_owner_is_taken_from_the_envelope_alone(stage):
    # SEC-6
    await stage.memory()
    await stage.talk.add([Item(text="tea", key="user.x")], ANN)
    for owner in ("", " ", "a\nb"):
        with pytest.raises(InputError, match="owner"):
            await stage.caller("memory").call("list", owner)
    told = await stage.caller("memory").call("list", "bob", scope={"user": "ann"})
    assert told == []


async def test_without_the_memory_tools_and_agent_answer_and_say_what_is_missing(stage):
    await stage.tools()
    await stage.agent()
    answer = await stage.say("save it")
    assert answer.answer == "Memory unavailable: no process serves memory. Start one: memstory-reference serve memory"
    await stage.talk.settle()  # there is nothing to wait for
    assert "topics" not in await stage.talk.inspect("status", {}, ANN)


async def test_a_memory_whose_embedder_is_down_is_another_reason(stage):
    for part in (stage.memory, stage.tools, stage.agent):
        await part()
    stage.embedder.is_down = True
    assert (await stage.say("save it")).answer == "Memory unavailable: the embedder is down; start it"


async def test_without_tools_the_agent_answers_and_knows_them_when_they_come(stage):
    await stage.memory()
    await stage.agent()
    assert (await stage.say("save it")).answer == "Noted."
    tools = await stage.tools()
    assert (await stage.say("save it")).answer == "Memory saved: user.x"
    await tools.stop()
    await stage.bus.settle()
    assert (await stage.say("save it")).answer == "Noted."


async def test_tools_and_agent_find_each_other_again_after_the_bus_was_away(stage):
    await stage.memory()
    agent, tools = await stage.agent(), await stage.tools()
    for back in (agent, tools):
        agent._agent.toolbox._specs.clear()  # what was announced meanwhile was not heard
        await back.come_back()
        await stage.bus.settle()
        assert (await stage.say("save it")).answer == "Memory saved: user.x"


class FailingChat:
    name = "made for a test"

    async def chat(self, _):
        raise ChatModelUnavailableError("the model is down; start it by: ollama serve")


async def test_where_the_agents_model_fails_the_error_begins_with_that_what_was_said_is_kept(stage):
    await stage.memory()
    await stage._started(AgentPart(stage.bus, chat=FailingChat(), new_id=stage.new_id, settings=SETTINGS))
    with pytest.raises(UnavailableError, match=r"^What you said is kept\. the model is down"):
        await stage.say("I like tea.")
    await stage.talk.settle()
    assert [one.text for one in await stage.talk.list(ANYWHERE, ["episodic"])] == [
        "Q: I like tea.\nA: (No answer came.)"
    ]


async def test_a_secret_that_no_memory_takes_is_not_said_to_be_kept_where_the_agents_model_fails(stage):
    strict = SETTINGS.merge({"secrets": "refuse"}, "test")
    await stage.memory()
    await stage._started(AgentPart(stage.bus, chat=FailingChat(), new_id=stage.new_id, settings=strict))
    with pytest.raises(UnavailableError, match=r"^What you said is not kept\. the model is down"):
        await stage.say("My password is hunter22.")


async def test_without_an_agent_the_caller_is_told_what_to_start(stage):
    await stage.memory()
    with pytest.raises(UnavailableError, match="no process serves agent"):
        await stage.say("save it")


async def test_a_question_of_the_wrong_shape_is_refused(stage):
    await stage.agent()
    for args in ({}, {"query": 1, "session_id": "s"}, {"query": "x", "session_id": None}, {"query": " "}):
        with pytest.raises(InputError):
            await stage.caller("agent").call("ask", "ann", **{"session_id": "s", **args})


@pytest.mark.parametrize("part", ["memory", "agent"])
async def test_a_second_process_of_a_part_that_holds_something_is_refused(stage, part):
    first = await getattr(stage, part)()
    with pytest.raises(SetupError, match=f"{part} is served on this bus already"):
        await getattr(stage, part)()
    await first.stop()
    await getattr(stage, part)()


async def test_participants_of_the_bus_may_still_publish_a_question(stage):
    for part in (stage.memory, stage.tools, stage.agent):
        await part()
    heard = []

    async def hear(found):
        heard.append(found.payload["answer"])

    await stage.bus.subscribe("response.generation", hear, name="critic")
    payload = {"query": "save it", "session_id": "s"}
    await stage.bus.publish(Envelope(subject="query.received", payload=payload, publisher="critic", owner="ann"))
    await stage.bus.settle()
    assert heard == ["Memory saved: user.x"]
