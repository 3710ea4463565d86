"""Memories that do none of the work, and do it the same way every time."""

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import StoryError
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.controls import BASELINES, CONTROLS, FAULTS
from memstory.controls.oracle import OracleFactory
from memstory.language.capabilities import FEATURES, operations
from memstory.language.grammar import grammar
from memstory.targets.discovery import load_targets

SCOPE = Scope(user="ann")
TEXTS = ["the cat sat", "a dog barked", "catalogue of boats", "rain in May"]


@pytest.fixture
def opened(tmp_path):
    async def make(name, seed=0):
        target = BASELINES[name]().target()
        await target.open(Environment(workspace=str(tmp_path), owner="ann", seed=seed), StoryClock())
        await target.add([Item(text=text) for text in TEXTS], SCOPE)
        return target

    return make


def texts(hits):
    return [hit.text for hit in hits]


async def test_a_text_without_a_vector_is_the_fault_of_the_story(tmp_path):
    target = OracleFactory().target()
    vectors = {"tea": [1.0, 0.0]}
    await target.open(Environment(workspace=str(tmp_path), owner="ann", seed=0, vectors=vectors), StoryClock())
    await target.add([Item(text="tea")], SCOPE)
    with pytest.raises(StoryError, match="'ferry'"):
        await target.search(Query(text="ferry"), SCOPE)


async def test_nothing_acknowledges_and_remembers_nothing(opened):
    target = await opened("nothing")
    receipt = await target.add([Item(text="x", key="k")], SCOPE)
    assert [item.outcome for item in receipt.items] == ["stored"]
    assert await target.get(Ref(id=receipt.items[0].id), SCOPE) is None
    assert (*await target.search(Query(text="x"), SCOPE), *await target.list(SCOPE)) == ()
    assert await target.delete(Ref(key="k"), SCOPE) is False
    assert (await target.say("hello", SCOPE)).answer == ""
    assert await target.context(Query(text="x"), SCOPE) == ""


def test_nothing_claims_every_operation_feature_and_option_but_to_have_loaded_what_it_drops():
    able = BASELINES["nothing"]().capabilities({"top_k": 5})
    assert able >= {*operations(), *FEATURES, "option.top_k"} - {"load", "preloaded"}
    assert "load" not in able


async def test_everything_finds_all_the_newest_first(opened):
    target = await opened("everything")
    assert texts(await target.search(Query(text="cat"), SCOPE)) == TEXTS[::-1]
    assert texts(await target.search(Query(text="cat", top_k=1), SCOPE)) == ["rain in May"]


async def test_grep_finds_substrings_in_the_order_of_telling(opened):
    target = await opened("grep")
    assert texts(await target.search(Query(text="cata rain the"), SCOPE)) == ["catalogue of boats", "rain in May"]
    assert texts(await target.search(Query(text="cat"), SCOPE)) == ["the cat sat", "catalogue of boats"]


async def test_random_finds_the_same_for_one_seed_and_query(opened):
    target = await opened("random")
    queries = [Query(text=f"question {number}") for number in range(8)]
    orders = [texts(await target.search(query, SCOPE)) for query in queries]
    assert orders == [texts(await target.search(query, SCOPE)) for query in queries]
    assert len({tuple(order) for order in orders}) > 1
    assert all(sorted(order) == sorted(TEXTS) for order in orders)


async def test_no_baseline_finds_what_another_user_said(opened):
    for name in ("everything", "grep", "random"):
        target = await opened(name)
        assert texts(await target.search(Query(text="cat"), Scope(user="bob"))) == []


def test_every_control_can_be_made_again_in_another_process():
    for name, factory in CONTROLS.items():
        assert factory.name == f"control:{name}"
        assert isinstance(load_targets([factory.spec])[factory.spec], factory)


def test_all_controls_are_chosen_by_one_name():
    assert list(load_targets(["control:all"])) == [f"control:{name}" for name in CONTROLS]


def test_the_grammar_describes_every_control_but_the_many_narrow_faults():
    assert set(grammar()["properties"]["control"]["properties"]) == {"because", *CONTROLS} - set(FAULTS)
