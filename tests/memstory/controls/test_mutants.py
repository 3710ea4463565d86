"""Each mutant has its one fault, and no other."""

from datetime import UTC, datetime

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.controls import MUTANTS, Oracle

ANN, BOB = Scope(user="ann"), Scope(user="bob")


@pytest.fixture
def opened(tmp_path):
    async def make(name):
        target = MUTANTS[name]().target() if name else Oracle()
        clock = StoryClock(datetime(2026, 3, 1, tzinfo=UTC))
        await target.open(Environment(workspace=str(tmp_path), owner="ann"), clock)
        target.clock = clock
        return target

    return make


async def behaviour(target):
    """What a memory with four texts of Ann and one of Bob shows: one line for each thing that can go wrong."""
    receipt = await target.add([Item(text=f"note {number}") for number in range(4)], ANN)
    ids = [item.id for item in receipt.items]
    await target.add([Item(text="bob's note", key="k")], BOB)
    await target.update(Ref(id=ids[0]), Item(text="note new"), ANN)
    listed = [hit.text for hit in await target.list(ANN)]
    seen = {
        "lost": len(set(listed) | {"note 0", "note new"}) < 5,
        "leaked": "bob's note" in listed or await target.get(Ref(key="k"), ANN) is not None,
        "stale": "note 0" in listed,
        "twice": len(listed) != len(set(listed)),
    }
    assert await target.delete(Ref(id=ids[3]), ANN)
    found = [hit.text for hit in await target.search(Query(text="note 3"), ANN)]
    return {fault for fault, there in seen.items() if there} | ({"undeleted"} if "note 3" in found else set())


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        (None, set()),
        ("amnesiac", {"lost"}),
        ("leaky", {"leaked"}),
        ("stale", {"stale"}),
        ("undeleting", {"undeleted"}),
    ],
)
async def test_a_mutant_has_its_own_fault_only(opened, name, faults):
    assert await behaviour(await opened(name)) == faults


async def test_the_duplicating_one_has_everything_twice(opened):
    target = await opened("duplicating")
    await target.add([Item(text="one"), Item(text="two")], ANN)
    hits = await target.list(ANN)
    assert sorted(hit.text for hit in hits) == ["one", "one", "two", "two"]
    assert len({hit.id for hit in hits}) == 4


async def test_a_mutant_says_what_it_is(opened):
    for name in MUTANTS:
        assert f"oracle with a fault: {name}" in (await (await opened(name)).about())["memory"]


async def test_the_oracle_hides_a_memory_from_its_moment_of_expiry_on(opened):
    target = await opened(None)
    await target.add([Item(text="permit", metadata={"expires_at": "2026-03-02T00:00:00Z"}), Item(text="tyres")], ANN)
    await target.clock.advance_to(datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC))
    assert [hit.text for hit in await target.list(ANN)] == ["permit", "tyres"]
    await target.clock.advance_to(datetime(2026, 3, 2, tzinfo=UTC))
    assert [hit.text for hit in await target.list(ANN)] == ["tyres"]
    assert await target.search(Query(text="permit"), ANN) == []
