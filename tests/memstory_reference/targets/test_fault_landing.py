"""A fault lands where a call really failed, was slow or told garbage; not where the part was only used."""

from __future__ import annotations

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import Refused
from memstory.contract.target import Environment, Item, Query, Scope
from memstory.targets.discovery import load_targets

ANN = Scope(user="case.ann", session="one")
NAMES = ("topics", "observations", "manager", "pipeline", "layers", "turns")


@pytest.fixture(scope="module")
def factories():
    return load_targets(["reference"], {})


async def landed(factory, folder, part, mode, use):
    folder.mkdir(exist_ok=True)
    target = factory.target()
    await target.open(Environment(workspace=str(folder), owner=ANN.user), StoryClock())
    await target.add([Item(text="My dentist is called Yusuf.")], ANN)
    await target.fault(part, mode)
    before = (await target.fault_counts())[part]
    try:
        await use(target)
    except Refused:
        assert mode != "slow"
    count = (await target.fault_counts())[part] - before
    await target.fault(part, "ok")
    await target.close()
    return count


async def listing(target):
    await target.list(ANN)


async def searching(target):
    await target.search(Query(text="dentist", top_k=3), ANN)


@pytest.mark.parametrize("mode", ["down", "slow", "garbage"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_fault_of_the_embedder_lands_where_a_question_is_embedded_and_not_where_memories_are_listed(
    factories, tmp_path, name, mode
):
    assert await landed(factories[name], tmp_path / "one", "embedder", mode, searching) > 0
    assert await landed(factories[name], tmp_path / "two", "embedder", mode, listing) == 0


@pytest.mark.parametrize("name", NAMES)
async def test_a_store_that_can_only_garble_searches_has_not_failed_where_memories_are_listed(
    factories, tmp_path, name
):
    assert await landed(factories[name], tmp_path, "store", "garbage", listing) == 0


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"layers"}))
async def test_a_search_in_a_garbled_store_lands(factories, tmp_path, name):
    assert await landed(factories[name], tmp_path, "store", "garbage", searching) > 0


@pytest.mark.parametrize("mode", ["down", "slow", "garbage"])
@pytest.mark.parametrize("name", NAMES)
async def test_a_fault_of_the_model_does_not_land_where_no_model_is_asked(factories, tmp_path, name, mode):
    assert await landed(factories[name], tmp_path, "model", mode, listing) == 0


async def test_a_batch_of_one_record_does_not_break(factories, tmp_path):
    async def add(target):
        await target.add([Item(text="My florist is called Wim.")], ANN)

    async def add_two(target):
        await target.add([Item(text="My baker is called Ada."), Item(text="My tailor is called Piet.")], ANN)

    assert await landed(factories["layers"], tmp_path / "one", "store", "garbage", add) == 0
    assert await landed(factories["layers"], tmp_path / "two", "store", "garbage", add_two) > 0
