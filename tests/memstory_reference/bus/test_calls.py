import asyncio
from itertools import count

import pytest
from memstory_tests_waiting import eventually

from memstory.contract.errors import MemstoryError, SetupError, UnavailableError
from memstory_reference.bus import InProcessBus, calls
from memstory_reference.bus.calls import Caller, CallServer, PartMissingError, PartSilentError, refuse_a_second
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import Envelope

NUMBERS = count()
SOON = 5.0


def new_id():
    return f"n{next(NUMBERS)}"


@pytest.fixture
def bus():
    return InProcessBus()


def caller(bus, **changes):
    settings = {"part": "desk", "name": "test", "timeout_seconds": SOON}
    return Caller(bus=bus, new_id=new_id, **{**settings, **changes})


async def served(bus, store="", **acts):
    server = CallServer("desk", acts, bus, store=store, new_id=new_id)
    await server.start()
    return server


async def echo(args, owner):
    return [owner, dict(args)]


async def test_a_call_brings_arguments_and_the_owner_of_its_envelope_and_takes_the_result_back(bus):
    await served(bus, echo=echo)
    assert await caller(bus).call("echo", "ann", text="x", owner_of=None) == ["ann", {"text": "x", "owner_of": None}]
    assert await caller(bus).long_call("echo", "bob", timeout_seconds=SOON) == ["bob", {}]


@pytest.mark.parametrize("error", [InputError, StoreConflictError, SetupError, UnavailableError])
async def test_an_error_of_the_part_is_the_same_error_for_the_caller(bus, error):
    async def fail(_, __):
        raise error("because of this")

    await served(bus, fail=fail)
    with pytest.raises(error, match=r"^because of this$"):
        await caller(bus).call("fail", "ann")


async def test_a_part_that_breaks_says_so_at_once_without_its_words_and_its_bus_counts_it(bus):
    async def fail(_, __):
        raise KeyError("a secret")

    await served(bus, fail=fail)
    with pytest.raises(UnavailableError, match=r"^desk failed \(KeyError\); the log of its process says more$"):
        await caller(bus).call("fail", "ann")
    await bus.settle()
    assert bus.failures == 1


async def test_a_result_that_cannot_travel_is_a_reason(bus):
    async def unsendable(_, __):
        return {1, 2}

    await served(bus, unsendable=unsendable)
    with pytest.raises(InputError, match="not JSON"):
        await caller(bus).call("unsendable", "ann")


async def test_a_request_without_arguments_is_refused_in_words(bus):
    await served(bus, echo=echo)
    request = Envelope(subject="desk.request.echo", payload={}, publisher="x", owner="ann", request_id="r")
    reply = await bus.request(request, "desk.result.echo", timeout_seconds=SOON)
    assert reply.payload == {"error": "desk.request.echo: the payload has 'args', an object", "kind": "input"}


@pytest.mark.parametrize("payload", [{"error": "x"}, {"error": "x", "kind": "no such kind"}])
async def test_an_unknown_kind_of_error_is_a_part_that_cannot_be_used(bus, payload):
    async def answer(request):
        await bus.publish(
            Envelope(
                subject="desk.result.echo",
                payload=payload,
                publisher="x",
                owner=request.owner,
                request_id=request.request_id,
            )
        )

    await bus.subscribe("desk.request.echo", answer, name="old")
    with pytest.raises(UnavailableError, match="x"):
        await caller(bus).call("echo", "ann")


async def test_who_serves_nothing_is_named_with_what_starts_it(bus):
    with pytest.raises(PartMissingError, match=r"no process serves desk\. Start one: memstory-reference serve desk"):
        await caller(bus).call("echo", "ann")
    assert await caller(bus).alive() is None


async def test_who_does_not_answer_in_time_leaves_the_outcome_open(bus):
    async def silent(_, __):
        await asyncio.sleep(60)

    await served(bus, silent=silent)
    with pytest.raises(PartSilentError, match=r"did not answer 'silent' within 0\.01 seconds; whether it was done is"):
        await caller(bus, timeout_seconds=0.01).call("silent", "ann")


async def test_a_process_that_dies_at_work_is_noticed_long_before_the_time_is_over(bus, monkeypatch):
    monkeypatch.setattr(calls, "LOOK_SECONDS", 0.01)
    begun = asyncio.Event()

    async def never(_, __):
        begun.set()
        await asyncio.Event().wait()

    server = await served(bus, never=never)
    other = await served(bus, never=never)
    asked = asyncio.create_task(caller(bus).long_call("never", "ann", timeout_seconds=600, process=server.process))
    await begun.wait()
    # As a server would see it: its subscriptions are gone, its work is not finished.
    for one in list(bus._subscriptions):
        if server.process in ".".join(one.pattern):
            bus.remove(one)
    with pytest.raises(PartMissingError, match="the process of desk that was asked is gone; whether 'never' was done"):
        await asyncio.wait_for(asked, SOON)
    assert (await caller(bus).alive())["process"] in (server.process, other.process)


async def test_a_process_that_is_only_busy_is_waited_for(bus, monkeypatch):
    monkeypatch.setattr(calls, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(calls, "ALIVE_SECONDS", 0.01)
    asked = []

    async def slow(_, __):
        for one in [one for one in bus._subscriptions if "alive" in one.pattern]:
            # It listens, and does not get round to saying so.
            one.handler = quiet
        await eventually(lambda: len(asked) > 2)
        return "done"

    async def quiet(_):
        asked.append("alive?")

    await served(bus, slow=slow)
    assert await caller(bus).long_call("slow", "ann", timeout_seconds=SOON) == "done"


async def test_a_second_process_is_refused_unless_it_shares_the_store(bus):
    await refuse_a_second(caller(bus), store="one")
    await served(bus, store="one")
    await refuse_a_second(caller(bus), store="one")
    with pytest.raises(SetupError, match="desk is served on this bus already, by process"):
        await refuse_a_second(caller(bus), store="two")


async def test_stores_without_a_name_are_never_shared(bus):
    await served(bus, store="")
    with pytest.raises(SetupError):
        await refuse_a_second(caller(bus), store="")


async def test_of_two_processes_one_does_what_is_asked_and_the_other_goes_on_alone(bus):
    done = []

    def act(name):
        async def do(_, __):
            done.append(name)

        return do

    first = await served(bus, do=act("first"))
    await served(bus, do=act("second"))
    for _ in range(10):
        await caller(bus).call("do", "ann")
    assert len(done) == 10
    assert set(done) == {"first", "second"}
    await first.stop()
    del done[:]
    for _ in range(3):
        await caller(bus).call("do", "ann")
    assert done == ["second"] * 3


def test_every_kind_of_error_is_a_leaf_of_ours():
    assert all(issubclass(leaf, MemstoryError) for leaf in calls.KINDS.values())
