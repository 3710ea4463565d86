"""The stream of a NATS server: what a memory is to write is kept, and given until it is taken."""

import asyncio
import contextlib

import pytest
from memstory_tests_waiting import eventually
from nats import errors
from nats.js import JetStreamContext

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.adapters.servers import nats_stream
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import MOST_SILENCES, open_nats_bus
from memstory_reference.adapters.servers.nats_connection import START_BY
from memstory_reference.bus.subjects import RESPONSE_FEEDBACK, RESPONSE_GENERATION, RESPONSES, STREAM, WRITER
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope


class Taker:
    """Hears the stream, and meets each message with the next of `errors`, then with none."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.heard = []

    async def __call__(self, envelope):
        self.heard.append((envelope.subject, envelope.payload.get("n"), envelope.request_id))
        if self.errors:
            raise self.errors.pop(0)

    @property
    def numbers(self):
        return [n for _, n, _ in self.heard]


def response(n, *, subject=RESPONSE_GENERATION, owner="ann", request_id="", **rest):
    known = request_id or f"q{n}"
    return Envelope(subject=subject, payload={"n": n}, publisher="test", owner=owner, request_id=known, **rest)


@pytest.fixture
def server(tmp_path):
    with EmbeddedNats(tmp_path / "nats") as running:
        yield running


@pytest.fixture
async def opened(server):
    buses = []

    async def connect(name="agent"):
        bus = await open_nats_bus(server.url, name)
        buses.append(bus)
        return bus

    yield connect
    for bus in buses:
        await bus.close()


async def taken(bus, handler):
    return await bus.subscribe(RESPONSES, handler, name="taker", durable=WRITER)


async def test_what_is_published_while_nobody_listens_waits_and_comes_in_its_order(opened):
    agent, memory, taker = await opened(), await opened("memory"), Taker()
    await (await taken(memory, taker)).unsubscribe()
    for n in range(20):
        await agent.publish(response(n, subject=RESPONSE_FEEDBACK if n % 2 else RESPONSE_GENERATION))
    await taken(memory, taker)
    await memory.settle()
    assert taker.numbers == list(range(20))
    await (await taken(memory, again := Taker())).unsubscribe()
    assert again.numbers == []


async def test_before_any_memory_has_served_the_publisher_is_told(opened):
    with pytest.raises(UnavailableError, match="memstory-reference serve memory"):
        await (await opened()).publish(response(1))


async def test_while_a_store_is_down_a_message_comes_again_and_none_overtakes_it(opened, monkeypatch):
    monkeypatch.setattr(nats_stream, "MOST_PAUSE_SECONDS", 0.01)
    agent, memory = await opened(), await opened("memory")
    taker = Taker(*(UnavailableError("down") for _ in range(9)))
    await taken(memory, taker)
    for n in range(3):
        await agent.publish(response(n))
    await eventually(lambda: len(taker.heard) == 12)
    await memory.settle()
    assert taker.numbers == [0] * 10 + [1, 2]


@pytest.mark.parametrize("silences", [MOST_SILENCES - 1, MOST_SILENCES])
async def test_a_stream_that_is_slow_to_answer_is_asked_again_before_all_counts_as_settled(
    opened, monkeypatch, silences
):
    agent, memory, taker = await opened(), await opened("memory"), Taker()
    await taken(memory, taker)
    for n in range(50):
        await agent.publish(response(n))
    answers, ask = [errors.TimeoutError()] * silences, JetStreamContext.stream_info

    async def stream_info(self, name):
        if answers:
            raise answers.pop()
        return await ask(self, name)

    monkeypatch.setattr(JetStreamContext, "stream_info", stream_info)
    if silences == MOST_SILENCES:
        with pytest.raises(UnavailableError, match="within 5 seconds"):
            await memory.settle()
    await memory.settle()
    assert taker.numbers == list(range(50))


async def test_what_is_settled_does_not_wait_for_a_store_that_is_down(opened):
    agent, memory = await opened(), await opened("memory")
    taker = Taker(UnavailableError("down"))
    await taken(memory, taker)
    await agent.publish(response(0))
    await asyncio.wait_for(memory.settle(), 10)
    assert taker.numbers == [0]


@pytest.mark.parametrize(("error", "times"), [(InputError("no"), 1), (ValueError("a bug"), nats_stream.ATTEMPTS)])
async def test_what_is_refused_comes_once_and_what_breaks_the_handler_a_few_times(opened, monkeypatch, error, times):
    monkeypatch.setattr(nats_stream, "MOST_PAUSE_SECONDS", 0.01)
    agent, memory, taker = await opened(), await opened("memory"), Taker(*[error] * 100)
    await taken(memory, taker)
    await agent.publish(response(0))
    await eventually(lambda: len(taker.heard) == times)
    taker.errors.clear()
    await agent.publish(response(1))
    await memory.settle()
    assert taker.numbers == [0] * times + [1]


async def test_what_a_memory_had_in_its_hands_comes_to_the_next_at_once(opened):
    agent, dying, next_one = await opened(), await opened("dying"), await opened("memory")
    begun, never = asyncio.Event(), asyncio.Event()

    async def hang(_):
        begun.set()
        await never.wait()

    await taken(dying, hang)
    await agent.publish(response(0))
    await begun.wait()
    await taken(next_one, taker := Taker())
    await next_one.settle()
    assert taker.numbers == [0]
    never.set()


async def test_a_server_that_is_killed_still_has_what_it_kept(opened, server):
    agent, memory, taker = await opened(), await opened("memory"), Taker(UnavailableError("down"))
    await taken(memory, taker)
    for n in range(2):
        await agent.publish(response(n))
    await memory.settle()
    server.kill()
    server.start()
    await eventually(lambda: taker.numbers == [0, 0, 1])

    async def is_kept():
        # Whether an attempt arrived that nobody answered is not known: with its id it may be made again.
        with contextlib.suppress(UnavailableError):
            await agent.publish(response(2))
            return True

    await eventually(is_kept)
    await memory.settle()
    assert taker.numbers == [0, 0, 1, 2]


async def test_one_id_of_one_owner_is_kept_once_and_another_owners_is_another(opened):
    agent, memory, taker = await opened(), await opened("memory"), Taker()
    await taken(memory, taker)
    for owner in ("ann", "ann", "bob", "Zoë"):
        await agent.publish(response(owner, owner=owner, request_id="r"))
    await memory.settle()
    assert taker.numbers == ["ann", "bob", "Zoë"]


async def test_a_message_without_an_id_gets_one_and_keeps_it(opened, monkeypatch):
    monkeypatch.setattr(nats_stream, "MOST_PAUSE_SECONDS", 0.01)
    agent, memory, taker = await opened(), await opened("memory"), Taker(UnavailableError("down"))
    await taken(memory, taker)
    for _ in range(2):
        await agent.publish(Envelope(subject=RESPONSE_GENERATION, payload={"n": 0}, publisher="test", owner="ann"))
    await eventually(lambda: len(taker.heard) == 3)
    ids = [one for _, _, one in taker.heard]
    assert ids[0] == ids[1] != ids[2]
    assert all(one.startswith(f"{STREAM} ") for one in ids)


async def test_who_listens_without_taking_hears_what_is_published_too(opened):
    agent, memory, critic, taker = await opened(), await opened("memory"), await opened("critic"), Taker()
    await taken(memory, taker)
    heard = Taker()
    await critic.subscribe(RESPONSE_GENERATION, heard, name="critic")
    await agent.publish(response(0))
    await memory.settle()
    await eventually(lambda: heard.numbers == [0])
    assert taker.numbers == [0]


async def test_a_server_without_jetstream_is_one_line_that_says_how_to_start_it(tmp_path):
    with EmbeddedNats(tmp_path, jetstream=False) as plain:
        bus = await open_nats_bus(plain.url, "memory")
        with pytest.raises(SetupError, match="has no JetStream") as refused:
            await taken(bus, Taker())
        assert START_BY in str(refused.value)
        assert "\n" not in str(refused.value)
        await bus.close()
