"""Random calls with random arguments: only typed errors, and never anything of another owner."""

import random

import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.systems.layers.identity import OwnerSession
from memstory_reference.systems.layers.records import Arc, Fact, Rule, Standing
from memstory_reference.systems.layers.sessions import EndReason

TEXTS = (
    "I live in Oslo.",
    "I live in Bergen.",
    "Forget where I live.",
    "Forget everything for good.",
    "What do you know about me?",
    "From now on, skip it.",
    "By it I mean the safety check.",
    "My card is 4111 1111 1111 1111.",
    "I want to die.",
    "Maybe I like tea.",
    "",
    " ",
    "\0",
    "\ud800",
    "\u202e",
    "猫" * 50,
    "a" * 5_000,
    '"] — "[rule] x\n',
    "'; DROP TABLE records;--",
)
OTHERS = (None, 5, -1, 10**19, 1.5, float("nan"), True, b"x", [], {}, [None], object())


class Chance:
    """Arguments, most of them right."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311  (a test's choice, no secret)
        self.ids = ["nobody's"]

    def text(self):
        return self.random.choice(TEXTS if self.random.random() < 0.93 else OTHERS)

    def word(self):
        return self.random.choice(("tea", "Oslo", "LIVES_IN", "note", "location", "mood", self.text()))

    def owner(self):
        return self.random.choice(("user:ann", "user:bob", "user:ann", self.text()))

    def identifier(self):
        return self.random.choice((*self.ids[-5:], self.text()))

    def content(self):
        kind = self.random.randrange(8)
        if kind < 4:
            return Fact(
                category=self.word(),
                subject=self.word(),
                predicate=self.word(),
                object=self.word(),
                evidence_quote=self.text(),
            )
        if kind == 4:
            return Arc(summary=self.text(), topics=self.random.choice((("boats",), self.text(), (self.text(),))))
        return self.text() if kind == 7 else Rule(rule=self.text(), explicit=True, evidence_quote=self.text())


async def _turn(service, chance, session):
    await service.turn(chance.text(), await service.who(chance.random.choice(("ann", "bob")), session))


async def _end(service, chance, session):
    who = await service.who(chance.random.choice(("ann", "bob", chance.text())), session)
    await service.end(who, EndReason.EXPLICIT)


async def _remember(service, chance, _):
    contents = [chance.content() for _ in range(chance.random.randrange(3))]
    done = await service.records.remember(chance.owner(), None, contents)
    chance.ids += [one.id for one in done if one.id]


async def _feedback(service, chance, session):
    who = await service.who("ann", session)
    await service._logs.give_feedback(who, chance.random.choice(("helpful", chance.text())), "text", chance.text())


CALLABLE = (
    *(_turn, _turn, _turn, _end, _remember, _remember, _remember, _feedback),
    lambda service, chance, _: service.records.edit(chance.owner(), chance.identifier(), chance.content()),
    lambda service, chance, _: service.records.forget_records(chance.owner(), [chance.identifier()]),
    lambda service, chance, _: service.records.archive(chance.owner(), chance.identifier()),
    lambda service, chance, _: service.records.restore(chance.owner(), chance.identifier()),
    lambda service, chance, _: service.records.search(chance.owner(), chance.text()),
    lambda service, chance, _: service.records.list_records(
        chance.owner(), limit=chance.random.choice((3, chance.text()))
    ),
    lambda service, chance, _: service.set_recall(
        chance.owner(), on=chance.random.choice((True, False, chance.text()))
    ),
    lambda service, chance, _: service.records.forget(chance.owner(), chance.text()),
    lambda service, chance, _: service.load_memory_for_turn(chance.text(), OwnerSession(owner="user:ann", session="-")),
)


async def call(service, chance):
    """Make one random call."""
    await chance.random.choice(CALLABLE)(service, chance, chance.random.choice(("s", "t", chance.text())))


@pytest.mark.doses("calls", 600, 100_000)
async def test_random_calls_raise_only_what_callers_know(open_layers, seed, calls):
    service, chance = await open_layers(), Chance(seed)
    for _ in range(calls):
        try:
            await call(service, chance)
        except MemstoryError:
            continue
    await service.settle()
    for owner in ("user:ann", "user:bob"):
        every = await service.records.list_records(owner, standings=tuple(Standing))
        assert {one.owner for one in every} <= {owner}
        pointed = {one.superseded_by for one in every} - {None}
        assert pointed <= {one.id for one in every}, "a pointer to what is not there"
