"""One suite that every bus passes: inside one process and over NATS; a third is one more entry in BUSES.

A bus "elsewhere" is another participant: the same object in one process, a second connection over a server.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from memstory_reference.adapters.servers.nats_bus import open_nats_bus
from memstory_reference.bus import InProcessBus
from memstory_reference.errors import InputError
from memstory_reference.ports import Envelope, NoRespondersError

SOON = 5.0


@asynccontextmanager
async def in_process(_):
    bus = InProcessBus()
    yield bus, bus
    await bus.settle()


@asynccontextmanager
async def over_nats(request):
    address = request.getfixturevalue("nats_url")
    here, elsewhere = await open_nats_bus(address, "here"), await open_nats_bus(address, "elsewhere")
    yield here, elsewhere
    await here.close()
    await elsewhere.close()


BUSES = {"in_process": in_process, "nats": over_nats}


@pytest.fixture(params=BUSES)
async def buses(request):
    async with BUSES[request.param](request) as opened:
        yield opened


@pytest.fixture
def bus(buses):
    return buses[0]


@pytest.fixture
def elsewhere(buses):
    return buses[1]


def envelope(subject="echo.request", payload=None, **rest):
    return Envelope(
        subject=subject, payload={} if payload is None else payload, **{"publisher": "test", "owner": "ann", **rest}
    )


class Collector:
    def __init__(self):
        self.seen = []
        self._changed = asyncio.Event()

    async def __call__(self, found):
        self.seen.append(found)
        self._changed.set()

    async def holds(self, number):
        """Return when so many were seen, wherever they were published."""
        async with asyncio.timeout(SOON):
            while len(self.seen) < number:
                self._changed.clear()
                await self._changed.wait()
        return self.seen


async def echo_on(bus, subject="echo.request", delay=0):
    async def answer(request):
        for _ in range(delay):
            await asyncio.sleep(0)
        await bus.publish(replace(request, subject="echo.result", publisher="echo"))

    return await bus.subscribe(subject, answer, name="echo")


async def test_a_message_reaches_every_subscriber_whose_pattern_matches(bus, elsewhere):
    exact, star, rest, other = Collector(), Collector(), Collector(), Collector()
    for pattern, collector in (("a.b", exact), ("a.*", star), (">", rest), ("a.c", other)):
        await elsewhere.subscribe(pattern, collector, name=pattern)
    await bus.publish(envelope("a.b", {"n": 1}))
    for one in (exact, star, rest):
        assert [found.payload for found in await one.holds(1)] == [{"n": 1}]
    await elsewhere.settle()
    assert other.seen == []


async def test_an_envelope_arrives_as_it_was_sent(bus, elsewhere):
    heard = Collector()
    await elsewhere.subscribe("a", heard, name="heard")
    sent = envelope(
        "a",
        {"text": "Zoë\n\t\0\ud800", "numbers": [1, 0.1, None, True], "": {}},
        publisher="Ä: b\r\n",
        owner=" 名\n",
        request_id="r 1",
    )
    await bus.publish(sent)
    assert await heard.holds(1) == [sent]


async def test_messages_begin_to_be_handled_in_the_order_in_which_they_were_sent(bus, elsewhere):
    heard = Collector()
    await elsewhere.subscribe("a.*", heard, name="heard")
    for n in range(200):
        await bus.publish(envelope(f"a.{n % 3}", {"n": n}))
    assert [one.payload["n"] for one in await heard.holds(200)] == list(range(200))


async def test_publishing_does_not_wait_for_the_handler(bus):
    gate, done = asyncio.Event(), []

    async def slow(_):
        await gate.wait()
        done.append(1)

    await bus.subscribe("a", slow, name="slow")
    await bus.publish(envelope("a"))
    assert done == []
    gate.set()
    await bus.settle()
    assert done == [1]


async def test_a_slow_handler_does_not_hold_up_the_next_message(bus):
    gate, heard = asyncio.Event(), Collector()

    async def slow_at_first(found):
        if not found.payload["n"]:
            await gate.wait()
        await heard(found)

    await bus.subscribe("a", slow_at_first, name="slow")
    for n in range(3):
        await bus.publish(envelope("a", {"n": n}))
    assert [one.payload["n"] for one in await heard.holds(2)] == [1, 2]
    gate.set()
    assert len(await heard.holds(3)) == 3


async def test_a_subscriber_cannot_change_what_another_one_gets(bus):
    seen = []

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


async def test_of_the_subscribers_of_one_queue_one_gets_a_message_and_others_get_it_too(bus, elsewhere):
    one, two, other_queue, no_queue = Collector(), Collector(), Collector(), Collector()
    await bus.subscribe("a.*", one, name="one", queue="workers")
    await elsewhere.subscribe("a.b", two, name="two", queue="workers")
    await elsewhere.subscribe("a.b", other_queue, name="three", queue="others")
    await bus.subscribe("a.b", no_queue, name="four")
    for n in range(40):
        await bus.publish(envelope("a.b", {"n": n}))
    assert len(await other_queue.holds(40)) == len(await no_queue.holds(40)) == 40
    await bus.settle()
    await elsewhere.settle()
    worked = [found.payload["n"] for found in (*one.seen, *two.seen)]
    assert sorted(worked) == list(range(40))
    assert one.seen
    assert two.seen


async def test_when_one_of_a_queue_leaves_the_other_gets_everything(bus, elsewhere):
    stayed = Collector()
    left = await bus.subscribe("a", Collector(), name="left", queue="workers")
    await elsewhere.subscribe("a", stayed, name="stayed", queue="workers")
    await left.unsubscribe()
    for _ in range(5):
        await bus.publish(envelope("a"))
    assert len(await stayed.holds(5)) == 5


async def test_a_request_gets_the_reply_with_its_own_id_among_twenty_at_once(bus, elsewhere):
    async def answer(request):
        # The later a request came, the sooner its answer goes out.
        for _ in range(40 - 2 * request.payload["n"]):
            await asyncio.sleep(0)
        await elsewhere.publish(replace(request, subject="echo.result"))

    await elsewhere.subscribe("echo.request", answer, name="echo")
    asked = [envelope(payload={"n": n}, request_id=f"r{n}") for n in range(20)]
    replies = await asyncio.gather(*(bus.request(one, "echo.result", timeout_seconds=SOON) for one in asked))
    assert [reply.payload["n"] for reply in replies] == list(range(20))


async def test_two_participants_who_ask_with_the_same_id_for_different_owners_get_their_own_reply(bus, elsewhere):
    await echo_on(elsewhere)
    mine, other = await asyncio.gather(
        bus.request(envelope(request_id="r", payload={"n": 1}), "echo.result", timeout_seconds=SOON),
        elsewhere.request(envelope(request_id="r", payload={"n": 2}, owner="bob"), "echo.result", timeout_seconds=SOON),
    )
    assert (mine.owner, mine.payload, other.owner, other.payload) == ("ann", {"n": 1}, "bob", {"n": 2})


async def test_a_reply_for_another_owner_is_no_reply(bus, elsewhere):
    async def swap(request):
        await elsewhere.publish(replace(request, subject="echo.result", owner="bob", payload={"secret": 1}))

    await elsewhere.subscribe("echo.request", swap, name="swap")
    with pytest.raises(TimeoutError):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=0.05)


async def test_a_reply_on_another_subject_is_no_reply(bus, elsewhere):
    async def elsewhere_answered(request):
        await elsewhere.publish(replace(request, subject="other.result"))

    await elsewhere.subscribe("echo.request", elsewhere_answered, name="echo")
    with pytest.raises(TimeoutError):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=0.05)


@pytest.mark.parametrize("observed", [False, True])
async def test_a_request_that_nobody_hears_fails_at_once(bus, observed):
    if observed:
        # Who asks also listens, to all else.
        await bus.subscribe("*.result", Collector(), name="observer")
    with pytest.raises(NoRespondersError):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=60)


async def test_a_request_without_an_id_or_with_one_in_use_is_refused(bus):
    await bus.subscribe("echo.request", Collector(), name="mute")
    with pytest.raises(InputError, match="request_id"):
        await bus.request(envelope(), "echo.result", timeout_seconds=1)
    waiting = asyncio.create_task(bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=60))
    await asyncio.sleep(0)
    with pytest.raises(InputError, match="already waiting"):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=1)
    waiting.cancel()


async def test_a_request_that_nobody_answers_times_out_and_its_id_is_free_again(bus, elsewhere):
    mute = await elsewhere.subscribe("echo.request", Collector(), name="mute")
    with pytest.raises(TimeoutError):
        await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=0.05)
    await mute.unsubscribe()
    await echo_on(elsewhere)
    assert (await bus.request(envelope(request_id="r"), "echo.result", timeout_seconds=SOON)).publisher == "echo"


async def test_replies_on_many_subjects_are_all_found(bus, elsewhere):
    async def answer(request):
        await elsewhere.publish(replace(request, subject=request.subject.replace("request", "result")))

    await elsewhere.subscribe("tool.request.*", answer, name="tools")
    for n in range(300):
        asked = envelope(f"tool.request.t{n}", {"n": n}, request_id="r")
        assert (await bus.request(asked, f"tool.result.t{n}", timeout_seconds=SOON)).payload == {"n": n}


async def test_a_handler_that_raises_is_counted_logged_and_called_again(bus, caplog):
    seen = []

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


async def test_a_handler_that_refuses_is_one_line_in_the_log_without_a_traceback(bus, caplog):
    async def choosy(_):
        raise InputError("not this one")

    await bus.subscribe("a", choosy, name="choosy")
    await bus.publish(envelope("a"))
    await bus.settle()
    assert (bus.refusals, bus.failures) == (1, 0)
    assert "choosy refused a message on a: not this one" in caplog.text
    assert "Traceback" not in caplog.text


async def test_after_unsubscribe_nothing_is_delivered_and_what_was_under_way_is_finished(bus):
    gate, begun, done = asyncio.Event(), asyncio.Event(), []

    async def slow(found):
        begun.set()
        await gate.wait()
        done.append(found.payload["n"])

    subscription = await bus.subscribe("a", slow, name="slow")
    await bus.publish(envelope("a", {"n": 1}))
    await asyncio.wait_for(begun.wait(), SOON)
    leaving = asyncio.create_task(subscription.unsubscribe())
    await asyncio.sleep(0)
    await bus.publish(envelope("a", {"n": 2}))
    assert not leaving.done()
    gate.set()
    await leaving
    await bus.settle()
    assert done == [1]
    await subscription.unsubscribe()  # twice is harmless


async def test_a_handler_may_end_its_own_subscription(bus):
    seen = []

    async def once(found):
        seen.append(found.payload["n"])
        await subscription.unsubscribe()

    subscription = await bus.subscribe("a", once, name="once")
    await bus.publish(envelope("a", {"n": 1}))
    await asyncio.wait_for(bus.settle(), SOON)
    await bus.publish(envelope("a", {"n": 2}))
    await bus.settle()
    assert seen == [1]


async def test_settle_waits_for_messages_that_handlers_publish(bus):
    collector = Collector()
    await echo_on(bus, delay=3)
    await bus.subscribe("echo.result", collector, name="end")
    await bus.publish(envelope())
    await bus.settle()
    assert len(collector.seen) == 1


async def test_a_handler_may_settle_without_waiting_for_itself(bus):
    done = []

    async def settles(_):
        await bus.settle()
        done.append(1)

    await bus.subscribe("a", settles, name="settles")
    await bus.publish(envelope("a"))
    await asyncio.wait_for(bus.settle(), SOON)
    assert done == [1]


async def test_a_message_that_is_refused_is_delivered_to_nobody(bus):
    collector = Collector()
    await bus.subscribe(">", collector, name="all")
    for bad in (envelope("a.*"), envelope("a b"), envelope("a", {"x": {1}}), envelope("a", [1])):
        with pytest.raises(InputError):
            await bus.publish(bad)
    await bus.settle()
    assert (collector.seen, bus.published) == ([], 0)


@pytest.mark.parametrize(("pattern", "queue"), [("a..b", None), (">.a", None), ("a b", None), ("a", "two words")])
async def test_what_is_no_pattern_and_no_queue_is_refused(bus, pattern, queue):
    with pytest.raises(InputError):
        await bus.subscribe(pattern, Collector(), name="bad", queue=queue)
