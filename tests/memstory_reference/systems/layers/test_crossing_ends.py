"""Turns that are answered while their session ends: what they said is kept, once, and in its place."""

import asyncio
import json

import pytest

from memstory_reference.storage.postgres.place import PostgresPlace
from memstory_reference.storage.sql_database import IN_MEMORY
from memstory_reference.systems.layers.layers_store import LayersStore, layers_database
from memstory_reference.systems.layers.records import Layer, Standing
from memstory_reference.systems.layers.sessions import EndReason
from memstory_reference.systems.layers.settings import MemoryMode


def fact(word, predicate="LIKES", category="interest"):
    quoted = {"category": category, "subject": "User", "predicate": predicate, "object": word, "evidence_quote": word}
    return json.dumps({"facts": [quoted]})


NOTHING = '{"facts": []}'


class Gates:
    """An extractor whose answers about a text wait until its gate is opened; the n-th call has the n-th answer."""

    def __init__(self, **answers):
        self.answers = {word: list(found) for word, found in answers.items()}
        self.gates = {word: asyncio.Event() for word in answers}
        self.asked = {word: asyncio.Event() for word in answers}

    def __call__(self, prompt):
        word = next((one for one in self.answers if one in prompt.partition("The user said:")[2]), None)
        return self._answer(word) if word else NOTHING

    async def _answer(self, word):
        self.asked[word].set()
        found = self.answers[word].pop(0)
        if found is not None:
            await self.gates[word].wait()
        return "no JSON" if found is None else found


@pytest.fixture
async def open_twins(open_layers):
    """Open two services on one store, as two processes are; neither knows of the other's lanes."""

    async def open_(models):
        store, pair = (
            LayersStore(layers_database(IN_MEMORY, model="none")),
            models if isinstance(models, list) else [models] * 2,
        )
        return [await open_layers(model=one, mode=MemoryMode.INCOGNITO, wrap=lambda _: store) for one in pair]

    return open_


async def objects(service, who, *standings):
    found = await service.records.list_records(who.owner, [Layer.SEMANTIC], standings or (Standing.ACTIVE,))
    return sorted(one.content.object for one in found)


async def test_facts_of_turns_that_cross_the_end_are_all_kept(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    for number in range(12):
        await asyncio.gather(service.end(who, EndReason.EXPLICIT), service.turn(f"I like thing{number}.", who))
        await service.settle()
        await service.turn("Hello again.", who)
    await service.settle()
    await service.end(who, EndReason.EXPLICIT)
    assert await objects(service, who) == sorted(f"thing{number}" for number in range(12))


async def test_an_end_looks_at_a_turn_that_was_spoken_while_it_was_at_work(open_layers, by_purpose):
    # The first two answers about "harbour" are of the turn itself, whose model fails: the end asks again.
    gates = Gates(harbour=[None, None, NOTHING], penicillin=[fact("penicillin"), fact("penicillin")])
    service = await open_layers(model=by_purpose(extract_semantic=gates))
    who = await service.who("ann", "t")
    await service.turn("We talked at the harbour.", who)
    await service.settle()
    end = asyncio.create_task(service.end(who, EndReason.WEB))
    gates.asked["harbour"].clear()
    await gates.asked["harbour"].wait()
    assert (await service.turn("I am allergic to penicillin.", who)).answer == "I see."
    gates.gates["harbour"].set()
    await asyncio.wait([end], timeout=0.2)
    gates.gates["penicillin"].set()
    assert await end is not None
    await service.settle()
    assert await objects(service, who) == ["penicillin"]
    assert (await service.status(who.owner))["active_sessions"] == 0


async def test_a_lane_that_comes_after_the_end_writes_what_the_end_could_not_extract(open_twins, by_purpose):
    gates = Gates(penicillin=[fact("penicillin"), None, None])
    one, other = await open_twins(by_purpose(extract_semantic=gates))
    who = await one.who("ann", "t")
    # No rule reads these words.
    await one.turn("Then there was penicillin.", who)
    await gates.asked["penicillin"].wait()
    assert await other.end(who, EndReason.EXPLICIT) is not None
    gates.gates["penicillin"].set()
    await one.settle()
    assert await objects(one, who) == ["penicillin"]


async def test_a_lane_that_comes_after_the_end_counts_nothing_twice_and_replaces_nothing_newer(open_twins, by_purpose):
    slow, gate = by_purpose(), asyncio.Event()
    asked = asyncio.Event()

    async def late():
        asked.set()
        await gate.wait()
        return fact("Oslo", "LIVES_IN", "location")

    slow.answers["extract_semantic"] = lambda _: late()
    quick = by_purpose(
        extract_semantic=lambda prompt: fact("Bergen" if "Bergen." in prompt else "Oslo", "LIVES_IN", "location"),
        reconcile='{"action": "supersede", "target": 1}',
    )
    slow.answers["reconcile"] = quick.answers["reconcile"]
    one, other = await open_twins([slow, quick])
    who = await one.who("ann", "t")
    await one.turn("I live in Oslo.", who)
    await asked.wait()
    await other.end(who, EndReason.EXPLICIT)
    await other.turn("I live in Bergen.", who)
    await other.settle()
    gate.set()
    await one.settle()
    every = await one.records.list_records(who.owner, [Layer.SEMANTIC], tuple(Standing))
    assert {(row.content.object, row.standing, row.count) for row in every} == {
        ("Oslo", Standing.SUPERSEDED, 1),
        ("Bergen", Standing.ACTIVE, 1),
    }


async def test_a_late_lane_leaves_the_turns_of_the_next_session_to_their_own(open_twins, by_purpose):
    gates = Gates(tea=[fact("tea"), None, None], coffee=[fact("coffee", "DRINKS")])
    one, other = await open_twins(by_purpose(extract_semantic=gates))
    who = await one.who("ann", "t")
    await one.turn("I like tea", who)
    await gates.asked["tea"].wait()
    await other.end(who, EndReason.EXPLICIT)
    await other.turn("I like coffee", who)
    await gates.asked["coffee"].wait()
    gates.gates["tea"].set()
    await one.settle()
    gates.gates["coffee"].set()
    await other.settle()
    assert await objects(one, who) == ["coffee", "tea"]


async def test_a_session_that_begins_again_reports_only_its_own_end(open_layers):
    service = await open_layers()
    who = await service.who("ann", "t")
    for _ in range(3):
        await service.turn("Hello.", who)
        await service.end(who, EndReason.EXPLICIT)
    reports = service.diagnostics(who)
    assert [report["turn"] for report in reports] == [0, 1]
    assert reports[0]["arc"] is False


@pytest.mark.repeats
@pytest.mark.slow
async def test_two_processes_on_one_postgres_keep_what_crosses_an_end(open_layers, postgres_url):
    place = PostgresPlace(url=postgres_url, schema="crossing")
    one, other = await open_layers(place=place), await open_layers(place=place)
    who = await one.who("ann", "t")
    for number in range(10):
        await asyncio.gather(one.turn(f"I like thing{number}.", who), other.end(who, EndReason.EXPLICIT))
        await one.settle()
        await one.turn("Hello again.", who)
    await one.settle()
    assert await objects(one, who) == sorted(f"thing{number}" for number in range(10))
