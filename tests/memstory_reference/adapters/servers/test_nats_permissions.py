"""A real server with the configuration that `serve config` prints: each part does its work, a stranger nothing."""

import asyncio
import contextlib
import logging
from itertools import count

import pytest
from memstory_tests_waiting import eventually
from nats import errors

from memstory.contract.errors import SetupError, UnavailableError
from memstory.contract.models import Reply, ToolRequest
from memstory.contract.target import Item, Ref, Scope
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.machine import SystemClock
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import open_nats_bus
from memstory_reference.adapters.vectors.exact_store import ExactStore
from memstory_reference.bus.calls import Caller
from memstory_reference.bus.permissions import PARTS, server_configuration
from memstory_reference.bus.subjects import STREAM
from memstory_reference.ports import Envelope
from memstory_reference.systems.topics.memory_service import MemoryService
from memstory_reference.systems.topics.process import (
    AgentPart,
    MemoryPart,
    RemoteMemory,
    RemoteTopicsMemory,
    ToolsPart,
)
from memstory_reference.systems.topics.settings import TopicsSettings

NUMBERS = count()
SETTINGS = TopicsSettings.default().merge({"min_score": 0.3, "tool_timeout_seconds": 10}, "test")
ANN = Scope(user="ann", session="s")


def new_id():
    return f"n{next(NUMBERS)}"


class SameVector(FixedVectors):
    async def embed(self, texts, purpose):
        return await super().embed(["tea"] * len(texts), purpose)


class SavingChat:
    name = "made for a test"

    async def chat(self, request):
        if request.messages[-1].role == "tool":
            return Reply(content=request.messages[-1].content)
        return Reply(
            content="", tool_requests=[ToolRequest(name="save_topic", arguments={"topic": "user.x", "content": "tea"})]
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with EmbeddedNats(tmp_path_factory.mktemp("nats"), configuration=server_configuration(str.upper)) as running:
        yield running


@pytest.fixture
async def bus_of(server):
    opened = []

    async def connect(part):
        bus = await open_nats_bus(server.url.replace("nats://", f"nats://{part}:{part.upper()}@"), part)
        opened.append(bus)
        return bus

    yield connect
    for bus in opened:
        await bus.close()


@pytest.fixture
async def running(bus_of):
    """Memory, tools and agent, each under its own name; yield what a person at the terminal has."""
    store = ExactStore(model="fixed-2", dimension=2)
    service = MemoryService(
        settings=SETTINGS, vectors=store, embedder=SameVector({"tea": [1, 0]}), clock=SystemClock(), new_id=new_id
    )
    parts = [
        MemoryPart(service, await bus_of("memory"), new_id),
        ToolsPart(await bus_of("tools"), settings=SETTINGS, new_id=new_id),
        AgentPart(await bus_of("agent"), chat=SavingChat(), new_id=new_id, settings=SETTINGS),
    ]
    for part in parts:
        await part.start()
    chat = await bus_of("chat")

    def caller(part):
        return Caller(bus=chat, part=part, new_id=new_id, name="chat", timeout_seconds=10)

    yield RemoteTopicsMemory(agent=caller("agent"), memory=caller("memory"), show_calls=lambda _: None)
    for part in reversed(parts):
        await part.stop()
    await store.close()


async def test_each_part_does_its_work_with_its_own_rights(running, caplog):
    async def is_announced():
        return (await running.inspect("status", {}, ANN))["tools"]

    await eventually(is_announced)
    async with asyncio.timeout(30):
        answer = await running.say("Save it.", ANN)
        await running.settle()
        turn = (await running.list(Scope(user="ann"), ["episodic"]))[0]
        await running.feedback(Ref(id=turn.id), 1, ANN)
    assert answer.answer == "Memory saved: user.x"
    assert [one.text for one in await running.list(Scope(user="ann"), ["topic"])] == ["tea"]
    assert "ermission" not in caplog.text


@pytest.mark.parametrize("user", ["", "stranger:x@", "memory:guess@"])
async def test_who_has_no_password_is_not_let_in(server, user):
    with pytest.raises(SetupError):
        await open_nats_bus(server.url.replace("nats://", f"nats://{user}"), "stranger")


FORGED = {
    "response.generation": {"query": "I am evil.", "answer": "Yes.", "session_id": "s", "query_id": "q"},
    "memory.request.add": {"args": {"items": [{"key": "user.x", "text": "evil"}]}},
    "memory.request.forget": {"args": {"memory_id": "topic:ann:user.x"}},
    "tool.request.save_topic": {"args": {"topic": "user.x", "content": "evil"}},
    "agent.request.ask": {"args": {"query": "Save it.", "session_id": "s"}},
    "query.received": {"query": "Save it.", "session_id": "s"},
}


BUSINESS = {
    "chat": {"memory.request.add", "memory.request.forget", "agent.request.ask"},
    "tools": {"memory.request.add", "memory.request.forget"},
    "agent": {"response.generation", "tool.request.save_topic"},
}
FOREIGN = [(part, subject) for part in PARTS for subject in FORGED if subject not in BUSINESS.get(part, ())]


@pytest.mark.parametrize(("part", "subject"), FOREIGN)
async def test_a_part_cannot_do_for_an_owner_what_is_not_its_business(running, bus_of, caplog, part, subject):
    await running.add([Item(text="tea", key="user.x")], ANN)
    bus = await bus_of(part)
    with caplog.at_level(logging.WARNING):
        forged = Envelope(subject=subject, payload=FORGED[subject], publisher=part, owner="ann", request_id="f")
        is_streamed = subject == "response.generation"
        with pytest.raises(UnavailableError) if is_streamed else contextlib.nullcontext():
            await bus.publish(forged)
        await bus.settle()
        await running.settle()
    assert "ermissions" in caplog.text
    assert [one.text for one in await running.list(Scope(user="ann"), ["topic"])] == ["tea"]
    assert not await running.list(Scope(user="ann"), ["episodic"])


@pytest.mark.parametrize("pattern", [">", "_INBOX.>", "_INBOX.memory.>", "response.*"])
async def test_nobody_but_the_memory_hears_what_is_given_to_it_or_takes_it_away(running, bus_of, pattern):
    heard = []

    async def hear(envelope):
        heard.append(envelope)

    spy = await bus_of("layers")
    await spy.subscribe(pattern, hear, name="spy")
    jetstream = spy.connection.client.jetstream(timeout=0.5)
    for act in (jetstream.stream_info(STREAM), jetstream.delete_stream(STREAM), jetstream.get_msg(STREAM, seq=1)):
        with pytest.raises(errors.TimeoutError):
            await act
    async with asyncio.timeout(30):
        await running.say("Save it.", ANN)
        await running.settle()
    await spy.settle()
    assert heard == []
    assert len(await running.list(Scope(user="ann"), ["episodic"])) == 1


async def test_nobody_but_the_memory_hears_what_is_asked_of_it(running, bus_of):
    heard = []
    spy = await bus_of("layers")
    with pytest.raises((UnavailableError, TimeoutError)):
        await RemoteMemory(Caller(bus=spy, part="memory", new_id=new_id, name="spy", timeout_seconds=0.5)).list(
            Scope(user="ann"), ["topic"]
        )

    async def hear(envelope):
        heard.append(envelope)

    await spy.subscribe(">", hear, name="spy")
    await running.add([Item(text="tea", key="user.x")], ANN)
    await spy.settle()
    assert heard == []
