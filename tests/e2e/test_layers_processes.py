"""The layers in several processes that share a Postgres: one memory, whoever answers, and whoever dies."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass
from itertools import count

import pytest
from memstory_tests_waiting import eventually

from memstory.contract.errors import UnavailableError
from memstory.contract.target import Scope
from memstory_reference.adapters.servers.embedded_nats import EmbeddedNats
from memstory_reference.adapters.servers.nats_bus import open_nats_bus
from memstory_reference.bus.calls import Caller
from memstory_reference.systems.layers.process import PART, RemoteLayersMemory

pytestmark = pytest.mark.slow
SOON = 20.0
NUMBERS = count()
FACTS = ("I live in Vienna.", "My sister is Ana.", "I take fluoxetine daily.", "I work at Acme.")


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


def talk_on(bus, thread, user="ann"):
    caller = Caller(bus=bus, part=PART, new_id=lambda: f"l{next(NUMBERS)}", name="test", timeout_seconds=SOON)
    return Talk(RemoteLayersMemory(caller), Scope(user=user, session=thread))


async def facts_are(talk, number):
    """Wait until so many facts are kept: what a turn leaves is decided after its reply, in whichever process."""

    async def are_kept():
        return (await talk.status())["counts"]["semantic"] == number

    await eventually(are_kept)


@pytest.fixture
def serve(processes, postgres_database):
    def begin(**environ):
        options = ("--store", postgres_database, "--embedder", "none")
        chat = ("--chat", "ollama:silent") if "OLLAMA_HOST" in environ else ()
        return processes.begin("layers", *options, *chat, **environ)

    return begin


@pytest.fixture
def silent_model():
    """A port that takes calls and answers none: a model that thinks for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(SOON)
        yield listening


async def test_what_one_process_heard_the_other_recalls_and_one_ends_the_session(processes, serve, bus):
    for one in [serve(), serve()]:
        processes.ready(one)
    talk, answers, answered_by = talk_on(bus, "t1"), [], set()
    for said in (*FACTS, *["Where do I live?"] * 12):
        answers.append(await talk.turn(said))
        answered_by.add(talk.memory.answered_by)
        if said == FACTS[-1]:
            await facts_are(talk, len(FACTS))
    assert len(answered_by) == 2
    assert {one.answer for one in answers[len(FACTS) :]} == {'You told me: "I live in Vienna."'}
    assert not any(one.notes for one in answers)

    reports = await asyncio.gather(*(talk.end("explicit") for _ in range(6)))
    assert sum(report["ended"] for report in reports) == 1
    status = await talk.status()
    assert (status["counts"]["episodic"], status["counts"]["semantic"], status["active_sessions"]) == (1, len(FACTS), 0)
    assert "Vienna" in (await talk_on(bus, "t2").turn("Where do I live?")).answer
    assert "Vienna" not in (await talk_on(bus, "t2", user="bob").turn("Where do I live?")).answer


async def test_a_process_that_dies_while_it_answers_leaves_nothing_half_done(
    processes, serve, bus, silent_model, tmp_path
):
    processes.ready(serve())
    talk = talk_on(bus, "t1")
    await talk.turn(FACTS[0])
    await facts_are(talk, 1)
    with EmbeddedNats(tmp_path / "second-bus") as second:
        host = f"http://127.0.0.1:{silent_model.getsockname()[1]}"
        dying = processes.ready(serve(MEMSTORY_NATS=second.url, OLLAMA_HOST=host))
        other_bus = await open_nats_bus(second.url, "test")
        turn = asyncio.create_task(talk_on(other_bus, "t1").turn(FACTS[1]))
        called, _ = await asyncio.to_thread(silent_model.accept)
        dying.kill()
        with pytest.raises(UnavailableError, match="is gone; whether 'turn' was done is not known"):
            await asyncio.wait_for(turn, SOON)
        called.close()
        await other_bus.close()
    # The session goes on elsewhere, without the turn that nobody answered.
    assert "Vienna" in (await talk.turn("Where do I live?")).answer
    assert (await talk.status())["counts"]["semantic"] == 1
    assert (await talk.turn(FACTS[1])).answer
    await facts_are(talk, 2)
    report = await talk.end("explicit")
    assert report["ended"]
    assert (await talk.status())["active_sessions"] == 0


async def test_the_one_that_is_left_answers_and_who_comes_back_serves_again(processes, serve, bus):
    first, second = [processes.ready(one) for one in [serve(), serve()]]
    talk = talk_on(bus, "t1")
    acknowledged = []
    for killed in (first, second):
        killed.kill()
        for said in FACTS[len(acknowledged) : len(acknowledged) + 2]:
            answer = None
            async with asyncio.timeout(SOON):
                while answer is None:
                    # Until the server knows that the other one is gone, a call may still go there, and says so.
                    with contextlib.suppress(UnavailableError):
                        answer = await talk.turn(said)
            acknowledged.append(said)
        await facts_are(talk, len(acknowledged))
        processes.ready(serve())
    assert (await talk.status())["counts"]["semantic"] == len(FACTS)


def test_layers_of_another_store_are_refused_on_the_same_bus(processes, serve):
    processes.ready(serve())
    done = processes.run("serve", "layers", "--store", "own-folder", "--embedder", "none")
    assert (done.returncode, done.stdout) == (1, "")
    assert "layers is served on this bus already" in done.stderr


def test_a_person_talks_with_layers_on_the_bus_and_sees_them_in_the_database(processes, serve, postgres_database):
    processes.ready(serve())
    said = ["I live in Vienna.", "Where do I live?", "/status", "/end"]
    done = processes.run("chat", "--system", "layers", "--bus", processes.bus, "--user-id", "ann", lines=said)
    assert done.returncode == 0, done.stderr
    assert 'You told me: "I live in Vienna."' in done.stdout
    at_store = ("--system", "layers", "--user-id", "ann", "--store", postgres_database, "--embedder", "none")
    listed = processes.run("memory", "list", *at_store)
    assert "[location] User LIVES_IN Vienna" in listed.stdout, listed.stderr
