"""The whole memory on a Postgres that goes away: the reply comes, nothing is half-written, the reason is reported."""

import asyncio
import logging
import subprocess
import sys

import pytest

from memstory.contract.errors import UnavailableError
from memstory.contract.installation import install_command
from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.systems.layers.records import Layer, SessionMemoryBuffer
from memstory_reference.systems.layers.sessions import EndReason
from memstory_reference.systems.layers.settings import MemoryMode

LONG = [f"Let us talk about boats and harbours, part {number}." for number in range(4)]


@pytest.fixture
def server(stoppable_postgres):
    stoppable_postgres.start()
    return stoppable_postgres


@pytest.fixture
def place(server):
    return PostgresPlace(url=server.url)


async def spoken(service, who):
    buffer = await service.buffer(who)
    return [turn.user for turn in buffer.turns] if buffer else []


async def test_a_fact_is_said_in_one_process_and_known_in_the_other(open_layers, place):
    one, other = await open_layers(place=place), await open_layers(place=place)
    who = await one.who("ann", "t")
    await one.turn("I live in Oslo.", who)
    await one.settle()
    assert who == await other.who("ann", "t")
    answer = await other.turn("Where do I live?", who)
    assert "Oslo" in answer.answer
    assert await spoken(one, who) == ["I live in Oslo.", "Where do I live?"]


async def test_a_server_that_is_gone_between_turns_costs_the_memory_of_the_turn(open_layers, place, server):
    service = await open_layers(place=place)
    who = await service.who("ann", "t")
    await service.turn("I live in Oslo.", who)
    await service.settle()
    await asyncio.to_thread(server.halt)
    answer = await service.turn("I live in Rome.", who)
    assert answer.answer
    assert any(note.startswith("store: Postgres does not answer") for note in answer.notes)
    await service.settle()
    await asyncio.to_thread(server.start)
    await service.turn("Where do I live?", who)
    await service.settle()
    assert await spoken(service, who) == ["I live in Oslo.", "Where do I live?"]
    facts = await service.records.list_records(who.owner, [Layer.SEMANTIC])
    assert [fact.content.object for fact in facts] == ["Oslo"]


async def test_a_server_that_goes_while_a_turn_runs_leaves_nothing_of_it(open_layers, by_purpose, place, server):
    async def halting():
        await asyncio.to_thread(server.halt)
        return "I see."

    model = by_purpose(chat=lambda _: halting())
    service = await open_layers(place=place, model=model)
    who = await service.who("ann", "t")
    answer = await service.turn("I live in Oslo.", who)
    assert answer.answer == "I see."
    assert any(note.startswith("store: Postgres does not answer") for note in answer.notes)
    await service.settle()
    await asyncio.to_thread(server.start)
    assert await spoken(service, who) == []
    assert await service.records.list_records(who.owner) == []


async def test_a_server_that_goes_before_the_extraction_leaves_the_turn_to_the_end(
    open_layers, by_purpose, place, server, caplog
):
    caplog.set_level(logging.CRITICAL)
    extracting = asyncio.Event()

    async def halting(found):
        if not extracting.is_set():
            extracting.set()
            await asyncio.to_thread(server.halt)
        return found

    facts = (
        '{"facts": [{"category": "interest", "subject": "User", "predicate": "LIKES", "object": "tea", '
        '"evidence_quote": "I like tea"}]}'
    )
    model = by_purpose(extract_semantic=lambda _: halting(facts))
    service = await open_layers(place=place, model=model)
    who = await service.who("ann", "t")
    assert not (await service.turn("I like tea.", who)).notes
    await service.settle()
    assert any("store" in report for report in service.diagnostics(who))
    await asyncio.to_thread(server.start)
    assert await service.records.list_records(who.owner) == []
    await service.end(who, EndReason.EXPLICIT)
    (fact,) = await service.records.list_records(who.owner, [Layer.SEMANTIC])
    assert fact.content.object == "tea"


async def test_a_crisis_is_told_in_the_diagnostics_where_its_log_is_gone(open_layers, place, server):
    service = await open_layers(place=place)
    who = await service.who("ann", "t")
    await asyncio.to_thread(server.halt)
    answer = await service.turn("I want to die.", who)
    assert answer.answer
    assert {note.partition(":")[0] for note in answer.notes} == {"crisis_log", "store"}
    await asyncio.to_thread(server.start)


async def test_two_processes_that_end_a_session_at_once_leave_one_arc(open_layers, postgres_database):
    place = PostgresPlace(url=postgres_database)
    one, other = await open_layers(place=place), await open_layers(place=place)
    who = await one.who("ann", "t")
    for said in LONG:
        await one.turn(said, who)
    await one.settle()
    reports = await asyncio.gather(one.end(who, EndReason.EXPLICIT), other.end(who, EndReason.EXPLICIT))
    assert sorted(report is None for report in reports) == [False, True]
    assert len(await one.records.list_records(who.owner, [Layer.EPISODIC])) == 1


async def test_twenty_rules_from_two_processes_keep_the_cap(open_layers, postgres_database):
    place = PostgresPlace(url=postgres_database)
    services = [await open_layers(place=place, rule_cap=5) for _ in range(2)]
    who = await services[0].who("ann", "t")

    async def talk(service, numbers):
        for number in numbers:
            await service.turn(f"From now on use style number {number} in letters.", who)
        await service.settle()

    await asyncio.gather(talk(services[0], range(5)), talk(services[1], range(5, 10)))
    assert len(await services[0].records.list_records(who.owner, [Layer.PROCEDURAL])) == 5


async def test_a_server_that_is_gone_at_the_opening_is_an_error(open_layers, place, server):
    await asyncio.to_thread(server.halt)
    with pytest.raises(UnavailableError, match="Start the server, or correct the store's URL"):
        await open_layers(place=place)


async def test_nothing_of_incognito_reaches_the_database(open_layers):
    nowhere = PostgresPlace(url="postgresql://127.0.0.1:1/nowhere")
    service = await open_layers(place=nowhere, mode=MemoryMode.INCOGNITO)
    who = await service.who("ann", "t")
    await service.turn("I live in Oslo.", who)
    assert isinstance(await service.buffer(who), SessionMemoryBuffer)


def test_without_the_driver_it_is_said_what_to_install():
    code = (
        "import sys; sys.modules['psycopg'] = None; from memstory_reference import open_memory\n"
        "open_memory('layers', 'postgresql:///x', embedding_model='none')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603  (our own)
    assert (
        f"SetupError: the driver of Postgres is missing. Install it with: {install_command('postgres')}" in run.stderr
    )
