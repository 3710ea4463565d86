import asyncio
from dataclasses import replace

import pytest

from memstory_reference.bus import BusLimits, InProcessBus
from memstory_reference.errors import InputError, UnavailableError
from memstory_reference.ports import Envelope, NoRespondersError


def envelope(subject="echo.request", payload=None, **rest):
    return Envelope(
        subject=subject, payload={} if payload is None else payload, **{"publisher": "test", "owner": "ann", **rest}
    )


class Collector:
    def __init__(self):
        self.seen = []

    async def __call__(self, found):
        self.seen.append(found)


async def echo_on(bus, subject="echo.request", delay=0):
    async def answer(request):
        for _ in range(delay):
            await asyncio.sleep(0)
        await bus.publish(replace(request, subject="echo.result", publisher="echo"))

    return await bus.subscribe(subject, answer, name="echo")


async def test_a_message_reaches_every_subscriber_whose_pattern_matches():
    bus, exact, star, rest, other = InProcessBus(), Collector(), Collector(), Collector(), Collector()
    for pattern, collector in (("a.b", exact), ("a.*", star), (">", rest), ("a.c", other)):
        await bus.subscribe(pattern, collector, name=pattern)
    await bus.publish(envelope("a.b", {"n": 1}))
    await bus.settle()
    assert [len(one.seen) for one in (exact, star, rest, other)] == [1, 1, 1, 0]


async def test_publishing_does_not_wait_for_the_handler():
    bus, gate, done = InProcessBus(), asyncio.Event(), []

    async def slow(_):
        await gate.wait()
        done.append(1)

    await bus.subscribe("a", slow, name="slow")
    await bus.publish(envelope("a"))
    assert done == []
    gate.set()
    await bus.settle()
    assert done == [1]


async def test_a_subscriber_cannot_change_what_another_one_gets():
    bus, seen = InProcessBus(), []

    async def meddle(found):
        found.payload["list"].append("forged")

    async def read(found):
        await asyncio.sleep(0)
        seen.append(found.payload)

    await bus.subscribe("a", meddle, name="meddle")
    await bus.subscribe("a", read, name="read")
    payload = {"list": []}
    await bus.publish(envelope("a", payload))
    await bus.settle()
    assert (seen, payload) == ([{"list": []}], {"list": []})


async def test_a_request_gets_the_reply_with_its_own_id_among_twenty_at_once():
    bus = InProcessBus()

    async def answer(request):
        # The later a request came, the sooner its answer goes out.
        for _ in range(40 - 2 * request.payload["n"]):
            await asyncio.sleep(0)
        await bus.publish(replace(request, subject="echo.result"))

    await bus.subscribe("echo.request", answer, name="echo")
    asked = [envelope(payload={"n": n}, request_id=f"r{n}") for n in range(20)]
    replies = await asyncio.gather(*(bus.request(one, "echo.result", timeout_seconds=5) for one in asked))
    assert [reply.payload["n"] for reply in replies] == list(range(20))


async def test_a_reply_for_another_owner_is_no_reply():
    bus = InProcessBus()

    async def swap(request):
        await bus.publish(replace(request, subject="echo.result", owner="bob", payload={"secret": 1}))

    await bus.subscribe("echo.request", swap, name="swap")
    with pytest.raises(TimeoutError):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=0.01)


async def test_a_request_that_nobody_hears_fails_at_once():
    with pytest.raises(NoRespondersError, match=r"echo\.request"):
        await InProcessBus().request(envelope(request_id="r"), "echo.result", timeout_seconds=60)


async def test_a_request_without_an_id_or_with_one_in_use_is_refused():
    bus = InProcessBus()
    await bus.subscribe("echo.request", Collector(), name="mute")
    with pytest.raises(InputError, match="request_id"):
        await bus.request(envelope(), "echo.result", timeout_seconds=1)
    waiting = asyncio.create_task(bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=60))
    await asyncio.sleep(0)
    with pytest.raises(InputError, match="already waiting"):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=1)
    waiting.cancel()


async def test_a_request_that_nobody_answers_times_out_and_its_id_is_free_again():
    bus = InProcessBus()
    mute = await bus.subscribe("echo.request", Collector(), name="mute")
    with pytest.raises(TimeoutError):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=0.01)
    await mute.unsubscribe()
    await echo_on(bus)
    assert (await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=5)).publisher == "echo"


async def test_a_handler_that_raises_is_counted_logged_and_called_again(caplog):
    bus, seen = InProcessBus(), []

    async def fragile(found):
        seen.append(found.payload["n"])
        if found.payload["n"] == 1:
            raise ValueError("broken")

    await bus.subscribe("a", fragile, name="fragile")
    for n in (1, 2):
        await bus.publish(envelope("a", {"n": n}))
        await bus.settle()
    assert (seen, bus.failures) == ([1, 2], 1)
    assert "fragile failed on a" in caplog.text


async def test_a_handler_that_refuses_is_one_line_in_the_log_without_a_traceback(caplog):
    bus = InProcessBus()

    async def choosy(_):
        raise InputError("not this one")

    await bus.subscribe("a", choosy, name="choosy")
    await bus.publish(envelope("a"))
    await bus.settle()
    assert (bus.refusals, bus.failures) == (1, 0)
    assert "choosy refused a message on a: not this one" in caplog.text
    assert "Traceback" not in caplog.text


async def test_after_unsubscribe_nothing_is_delivered_and_what_was_under_way_is_finished():
    bus, gate, done = InProcessBus(), asyncio.Event(), []

    async def slow(found):
        await gate.wait()
        done.append(found.payload["n"])

    subscription = await bus.subscribe("a", slow, name="slow")
    await bus.publish(envelope("a", {"n": 1}))
    leaving = asyncio.create_task(subscription.unsubscribe())
    await asyncio.sleep(0)
    await bus.publish(envelope("a", {"n": 2}))
    assert not leaving.done()
    gate.set()
    await leaving
    await bus.settle()
    assert done == [1]


async def test_settle_waits_for_messages_that_handlers_publish():
    bus, collector = InProcessBus(), Collector()
    await echo_on(bus, delay=3)
    await bus.subscribe("echo.result", collector, name="end")
    await bus.publish(envelope())
    await bus.settle()
    assert len(collector.seen) == 1


async def test_a_handler_may_settle_without_waiting_for_itself():
    bus, done = InProcessBus(), []

    async def settles(_):
        await bus.settle()
        done.append(1)

    await bus.subscribe("a", settles, name="settles")
    await bus.publish(envelope("a"))
    await asyncio.wait_for(bus.settle(), 5)
    assert done == [1]


async def test_the_log_keeps_the_latest_messages_and_numbers_them():
    bus = InProcessBus(BusLimits(logged_messages=3, logged_characters=20))
    for n in range(5):
        await bus.publish(envelope("a", {"n": n}))
    await bus.publish(envelope("a", {"text": "x" * 30}))
    assert [(one.number, one.payload) for one in bus.log()] == [
        (4, {"n": 3}),
        (5, {"n": 4}),
        (6, {"characters_of_json": 41}),
    ]
    assert [one.number for one in bus.log(since=5)] == [6]
    assert bus.published == 6


async def test_a_flood_of_deliveries_is_refused_before_memory_runs_out():
    bus, gate = InProcessBus(BusLimits(deliveries=2)), asyncio.Event()

    async def blocked(_):
        await gate.wait()

    await bus.subscribe("a", blocked, name="blocked")
    await bus.publish(envelope("a"))
    await bus.publish(envelope("a"))
    with pytest.raises(UnavailableError, match="2 deliveries"):
        await bus.publish(envelope("a"))
    gate.set()
    await bus.settle()
    await bus.publish(envelope("a"))
    await bus.settle()


async def test_a_message_that_is_refused_is_delivered_to_nobody():
    bus, collector = InProcessBus(), Collector()
    await bus.subscribe(">", collector, name="all")
    for bad in (envelope("a.*"), envelope("a", {"x": {1}}), envelope("a", [1])):
        with pytest.raises(InputError):
            await bus.publish(bad)
    await bus.settle()
    assert (collector.seen, bus.published) == ([], 0)
