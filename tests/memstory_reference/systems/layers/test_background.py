"""Silent sessions end once, in whichever process is there to see it (C-15, CF-14)."""

import asyncio
import logging
from datetime import timedelta
from itertools import count

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.composition.layers import log_in_file
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.sql_database import IN_MEMORY
from memstory_reference.systems.layers.background import Background, IdleWatch
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.logs import CRISES, FEEDBACK
from memstory_reference.systems.layers.memory import PURGE_EVERY, LayersMemory
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.records import Layer, SessionMemoryBuffer
from memstory_reference.systems.layers.settings import LayersSettings

IDLE = timedelta(minutes=20)
LONG = [f"Let us talk about boats, harbours and the weather at sea, part {number}." for number in range(4)]


class SharedStore(LayersStore):
    """A store that another process uses too: who closes it leaves it to the others."""

    async def aclose(self):
        return


@pytest.fixture(params=["memory", "postgres"])
async def open_service(request, open_layers, clock):
    """Open a service beside the others, on the one store that all share; it stands for a process."""
    if request.param == "postgres":
        place = PostgresPlace(url=request.getfixturevalue("postgres_database"))
        yield lambda: open_layers(place=place)
        return
    store, numbers, opened = SharedStore(layers_database(IN_MEMORY, model="none")), count(), []

    async def open_():
        ports = LayersPorts(
            store=store,
            crisis=log_in_file(IN_MEMORY, CRISES),
            feedback=log_in_file(IN_MEMORY, FEEDBACK),
            shared=True,
            embedder=None,
            model=None,
            clock=clock,
            new_id=lambda: f"n{next(numbers)}",
            config=LayersSettings(),
        )
        service = LayersMemory(ports, store_name="")
        await service.open()
        opened.append(service)
        return service

    yield open_
    for service in opened:
        await service.close()


async def pass_time(clock, minutes, *services):
    for _ in range(0, minutes, 5):
        await clock.move(minutes=5)
        for service in services:
            await service.settle()


async def talk(service, texts=LONG):
    who = await service.who("ann", "t")
    for text in texts:
        await service.turn(text, who)
        await service.settle()
    return who


async def arcs(service, who):
    return await service.records.list_records(who.owner, [Layer.EPISODIC])


async def test_a_session_of_a_process_that_died_is_ended_by_one_that_was_there_before(open_service, clock):
    other, dead = await open_service(), await open_service()
    who = await talk(dead)
    # As a kill leaves it: nothing is ended, nothing is watched any more.
    await dead._watch.stop()
    await pass_time(clock, 15, other)
    assert await other.buffer(who) is not None
    await pass_time(clock, 5, other)
    assert await other.buffer(who) is None
    assert len(await arcs(other, who)) == 1


async def test_of_several_processes_that_watch_one_session_one_ends_it(open_service, clock):
    services = [await open_service() for _ in range(3)]
    who = await talk(services[0])
    await pass_time(clock, 25, *services)
    assert await services[0].buffer(who) is None
    assert len(await arcs(services[0], who)) == 1
    ends = [turn for service in services for turn in service.diagnostics(who) if turn["turn"] == 0]
    assert len(ends) == 1


async def test_a_session_that_goes_on_elsewhere_is_left_alone(open_service, clock):
    other, talking = await open_service(), await open_service()
    who = await talk(talking)
    await pass_time(clock, 15, other, talking)
    await talk(talking, ["And one more word about harbours."])
    await pass_time(clock, 15, other, talking)
    assert (await other.buffer(who)).turn_count == len(LONG) + 1
    await pass_time(clock, 5, other, talking)
    assert await other.buffer(who) is None
    assert len(await arcs(other, who)) == 1


async def test_a_store_of_one_process_is_not_looked_through_again(open_layers, clock):
    await open_layers()
    # What sleeps is the daily purge of the crisis log.
    assert [moment for moment, _ in clock.sleepers] == [clock.now() + PURGE_EVERY]


@pytest.fixture
async def watch(clock):
    """A watch over `watch.store`, which may be an error; what it ends is in `watch.ends`."""

    async def active():
        if isinstance(made.store, Exception):
            raise made.store
        return made.store

    def end(owner, session):
        made.ends.append((owner, session))

    class Watch(IdleWatch):
        store, ends = (), []

    made = Watch(clock=clock, idle=IDLE, end=end, active=active)
    made.ends = []
    yield made
    await made.stop()


def silent_since(moment):
    return SessionMemoryBuffer(owner="ann", session="s", arc_id="a", started_at=moment, last_at=moment)


async def test_a_store_that_is_gone_for_a_while_is_looked_through_when_it_is_back(watch, clock, caplog):
    await watch.keep_looking()
    await asyncio.sleep(0)
    watch.store = UnavailableError("gone")
    await clock.move(minutes=10)
    await watch.settle()
    assert "the sessions of other processes could not be seen" in caplog.text
    watch.store = [silent_since(clock.now() - IDLE)]
    await clock.move(minutes=10)
    await watch.settle()
    assert watch.ends == [("ann", "s")]


async def test_to_settle_waits_for_the_end_of_what_a_look_has_found(watch, clock):
    watch.store = [silent_since(clock.now() - IDLE)]
    looking = asyncio.create_task(watch.look())
    await asyncio.sleep(0)
    await watch.settle()
    await looking
    assert watch.ends == [("ann", "s")]


async def test_a_look_does_not_put_back_what_was_heard_meanwhile(watch, clock):
    watch.touch("ann", "s", clock.now())
    watch.store = [silent_since(clock.now() - IDLE)]
    await watch.look()
    await clock.move(minutes=19)
    assert watch.ends == []
    await clock.move(minutes=1)
    assert watch.ends == [("ann", "s")]


async def test_a_look_that_breaks_is_told(watch, clock, caplog):
    await watch.keep_looking()
    await asyncio.sleep(0)
    watch.store = ValueError("a row that is not a session")
    await clock.move(minutes=10)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "a row that is not a session" in caplog.text


async def test_what_fails_after_its_caller_has_gone_is_told_to_who_asks():
    background, gate = Background(), asyncio.Event()

    async def work():
        await gate.wait()
        raise RuntimeError("bug")

    caller = asyncio.create_task(background.finish("ann/s", work()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gate.set()
    await background.settle("ann/s")
    with pytest.raises(RuntimeError, match="bug"):
        background.raise_failure()
