"""Two processes that serve one layers store, as parts on one bus; over real processes it is in tests/e2e."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from memstory.contract.errors import SetupError, UnavailableError
from memstory.contract.target import Scope
from memstory_reference.bus import InProcessBus
from memstory_reference.bus.calls import Caller, PartMissingError
from memstory_reference.composition.layers import log_in_file
from memstory_reference.errors import InputError
from memstory_reference.storage.sql_database import IN_MEMORY
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.logs import CRISES, FEEDBACK
from memstory_reference.systems.layers.memory import LayersMemory
from memstory_reference.systems.layers.ports import LayersPorts
from memstory_reference.systems.layers.process import PART, LayersPart, RemoteLayersMemory
from memstory_reference.systems.layers.settings import LayersSettings

NUMBERS = count()
FACT, ASKED, TOLD = "I live in Vienna.", "Where do I live?", 'You told me: "I live in Vienna."'


def new_id():
    return f"n{next(NUMBERS)}"


class MovableClock:
    """Stands still until it is moved."""

    def __init__(self):
        self.moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
        self._moved = asyncio.Condition()

    def now(self):
        return self.moment

    async def sleep_until(self, moment):
        async with self._moved:
            await self._moved.wait_for(lambda: self.moment >= moment)

    async def move(self, **by):
        async with self._moved:
            self.moment += timedelta(**by)
            self._moved.notify_all()
        for _ in range(50):
            await asyncio.sleep(0)


class SharedStore(LayersStore):
    """A store that another process uses too: who closes it leaves it to the others."""

    async def aclose(self):
        return


@dataclass(frozen=True)
class Talk:
    """One person's conversation with layers in other processes."""

    memory: RemoteLayersMemory
    scope: Scope

    async def turn(self, said):
        return await self.memory.say(said, self.scope)

    async def end(self, reason):
        return await self.memory.run("end", {"reason": reason}, self.scope)

    async def status(self):
        return await self.memory.inspect("status", {}, self.scope)


class Stage:
    def __init__(self):
        self.bus, self.clock, self.store = (
            InProcessBus(),
            MovableClock(),
            SharedStore(layers_database(IN_MEMORY, model="none")),
        )
        self.processes = []

    async def process(self, store=None):
        ports = LayersPorts(
            store=store or self.store,
            crisis=log_in_file(IN_MEMORY, CRISES),
            feedback=log_in_file(IN_MEMORY, FEEDBACK),
            shared=True,
            embedder=None,
            model=None,
            clock=self.clock,
            new_id=new_id,
            config=LayersSettings(),
        )
        service = LayersMemory(ports, store_name="")
        await service.open()
        part = LayersPart(service, self.bus, new_id=new_id)
        self.processes.append((part, service))
        await part.start()
        return part, service

    def caller(self):
        return Caller(bus=self.bus, part=PART, new_id=new_id, name="test", timeout_seconds=5)

    def talk(self, user="ann", thread="t1"):
        return Talk(RemoteLayersMemory(self.caller()), Scope(user=user or "", session=thread))

    async def said(self, talk, text):
        answer = await talk.turn(text)
        await talk.memory.settle()
        return answer


@pytest.fixture
async def stage():
    made = Stage()
    yield made
    for part, service in made.processes:
        await part.stop()
        await service.close()


async def test_what_one_process_heard_the_other_recalls(stage):
    await stage.process()
    await stage.process()
    talk = stage.talk()
    said = [(await stage.said(talk, text), talk.memory.answered_by) for text in (FACT, ASKED, ASKED)]
    assert len({process for _, process in said}) == 2
    rest = [turn for turn, _ in said[1:]]
    assert [one.answer for one in rest] == [TOLD, TOLD]
    assert "LIVES_IN Vienna" in rest[0].context


@pytest.mark.parametrize(
    ("other", "knows"),
    [({"thread": "t2"}, True), ({"user": "bob"}, False), ({"user": None}, False), ({"user": "session:t1"}, False)],
)
async def test_a_memory_belongs_to_its_user_in_every_thread_and_to_nobody_else(stage, other, knows):
    # C-19, CF-3
    await stage.process()
    await stage.said(stage.talk(), FACT)
    assert ((await stage.said(stage.talk(**other), ASKED)).answer == TOLD) is knows


async def test_without_a_user_the_thread_has_a_memory_of_its_own(stage):
    await stage.process()
    await stage.said(stage.talk(user=None), FACT)
    assert (await stage.said(stage.talk(user=None), ASKED)).answer == TOLD
    assert (await stage.said(stage.talk(user=None, thread="t2"), ASKED)).answer != TOLD


@pytest.mark.parametrize("owner", ["ann", "", "user:", "admin:ann", ":x"])
async def test_a_call_whose_owner_is_no_owner_is_refused(stage, owner):
    await stage.process()
    with pytest.raises(InputError):
        await stage.caller().call("turn", owner, said="x", session_id="t1")


@pytest.mark.parametrize("args", [{"said": 1}, {}, {"said": " "}, {"said": "x", "session_id": 7}])
async def test_a_turn_of_the_wrong_shape_is_refused(stage, args):
    await stage.process()
    with pytest.raises(InputError):
        await stage.caller().call("turn", "user:ann", **args)


async def test_of_many_who_end_a_session_one_ends_it(stage):
    await stage.process()
    await stage.process()
    talk = stage.talk()
    for text in (FACT, "My sister is Ana and she lives in Graz with her two children.", "I work at Acme as a baker."):
        await stage.said(talk, text)
    reports = await asyncio.gather(*(talk.end("explicit") for _ in range(6)))
    assert sum(report["ended"] for report in reports) == 1
    assert (await talk.status())["counts"]["episodic"] <= 1


async def test_the_session_of_a_process_that_is_gone_is_ended_by_another_when_it_falls_silent(stage):
    gone = await stage.process()
    talk = stage.talk()
    await stage.process()
    await stage.said(talk, FACT)
    await stage.said(talk, FACT)
    # As a kill leaves it: nothing is stopped, nothing is watched any more.
    await gone[0].stop()
    await gone[1]._watch.stop()
    assert (await talk.status())["active_sessions"] == 1
    for _ in range(5):
        await stage.clock.move(minutes=5)
        for _, service in stage.processes[1:]:
            await service.settle()
    assert (await talk.status())["active_sessions"] == 0


async def test_a_turn_that_two_processes_look_at_counts_once(stage):
    _, one = await stage.process()
    _, other = await stage.process()
    who = await one.who("ann", "t1")
    await one.turn(FACT, who)
    await one.settle()
    buffer = await one.buffer(who)
    turns = tuple(replace(turn, extracted=False) for turn in buffer.turns)
    unmarked = replace(buffer, turns=turns)
    loaded = stage.store.aload
    seen = []

    async def late(owner, session, last=None):
        # The other process has read the session before the turn was marked.
        seen.append(1)
        return unmarked if len(seen) == 1 else await loaded(owner, session, last)

    stage.store.aload = late
    await other._sessions.extract(who.owner, who.session, 1)
    stage.store.aload = loaded
    (fact,) = await one.records.list_records(who.owner)
    assert fact.count == 1
    assert any("extracted_elsewhere" in str(one) for one in other.diagnostics(who))


async def test_layers_of_another_store_are_refused_and_of_the_same_are_not(stage):
    await stage.process()
    await stage.process()
    with pytest.raises(SetupError, match="layers is served on this bus already"):
        await stage.process(SharedStore(layers_database(IN_MEMORY, model="none")))
    stage.processes.pop()


async def test_to_wait_for_a_process_that_is_gone_is_no_error(stage):
    await stage.process()
    talk = stage.talk()
    talk.memory.answered_by = "gone"
    await talk.memory.settle()


async def test_without_a_process_the_caller_is_told_what_to_start(stage):
    with pytest.raises(PartMissingError, match="no process serves layers"):
        await stage.talk().turn(FACT)
    with pytest.raises(UnavailableError):
        await stage.talk().status()
