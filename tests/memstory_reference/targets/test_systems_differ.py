"""What the systems decide each for itself, asked of their targets in the same words."""

from __future__ import annotations

from pkgutil import iter_modules

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.target import Environment, Item, Query, Scope
from memstory.targets.discovery import load_targets
from memstory_reference import systems
from memstory_reference.targets import REFERENCE

ANN = Scope(user="case.ann")
VECTORS = {"The gasket is brass.": [1, 0], "strawberry jam": [0, 1]}


@pytest.fixture(scope="module")
def factories():
    return load_targets(["reference"], {})


@pytest.fixture
async def opened(factories, tmp_path):
    """Open the target of a system; it is closed at the end."""
    targets = []

    async def make(name):
        target = factories[name].target()
        await target.open(Environment(workspace=str(tmp_path), owner=ANN.user, vectors=VECTORS), StoryClock())
        targets.append(target)
        return target

    yield make
    for target in targets:
        await target.close()


def having(factories, capability):
    return {name for name in REFERENCE if capability in factories[name].capabilities({})}


def test_the_target_reference_stands_for_every_system():
    assert sorted(REFERENCE) == sorted(module.name for module in iter_modules(systems.__path__))


def test_feedback_ranks_in_two_systems_and_is_kept_apart_in_a_third(factories):
    #
    assert having(factories, "feedback") == {"topics", "observations"}
    assert having(factories, "rank.reward") | having(factories, "rank.quality") == {"topics", "observations"}
    assert having(factories, "audit_separate") == having(factories, "job.feedback") == {"layers"}


def test_text_for_a_prompt_and_a_value_under_a_key_are_two_operations(factories):
    # what the manager's seed calls `get_context` is `get`, and what that of observations calls so is `context`.
    assert "manager" in having(factories, "get.key") - having(factories, "context")
    assert "observations" in having(factories, "context")


def test_what_becomes_of_old_conversations_is_up_to_each_system(factories):
    # the manager deletes them, the pipeline archives them, and in topics they stay until a purge is asked for.
    assert having(factories, "expiry") == {"manager"}
    assert having(factories, "compression") == having(factories, "search.archived") == {"pipeline"}
    assert {"topics", "layers"} <= having(factories, "job.purge")


@pytest.mark.parametrize(
    ("name", "found"), [("topics", 0), ("observations", 0), ("manager", 0), ("pipeline", 1), ("turns", 1)]
)
async def test_the_floor_of_similarity_is_each_systems_own(opened, name, found):
    # in the pipeline and in turns what is far comes last, but it comes.
    target = await opened(name)
    await target.add([Item(text="The gasket is brass.")], ANN)
    await target.settle()
    hits = await target.search(Query(text="strawberry jam", top_k=3), ANN)
    assert len(hits) == found


@pytest.mark.parametrize(
    ("name", "kind"), [("topics", "episodic"), ("observations", "observation"), ("manager", "conversation")]
)
async def test_a_kind_is_the_word_of_its_own_system(opened, name, kind):
    # `episodic` of one system is never taken for that of another.
    target = await opened(name)
    await target.add([Item(text="The gasket is brass.", kind=kind)], ANN)
    await target.settle()
    assert {hit.kind for hit in await target.list(ANN)} == {kind}
