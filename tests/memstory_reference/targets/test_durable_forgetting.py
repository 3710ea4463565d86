"""What was forgotten for good stays away when it is told in a conversation or comes back by an import."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import Refused
from memstory.contract.target import Environment, Item, Ref, Scope
from memstory.targets.discovery import load_targets

ANN, TOLD = Scope(user="case.ann", session="one"), "The chalet in Gdansk is owned by Brandt."


@pytest.fixture(scope="module")
def factories():
    return load_targets(["reference"], {})


async def opened(factory, folder, **options):
    target = factory.target()
    await target.open(Environment(workspace=str(folder), owner=ANN.user, options=options), StoryClock())
    return target


async def texts(target):
    await target.settle()
    return [hit.text for hit in await target.list(Scope(user=ANN.user))]


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("name", ["topics", "manager", "layers", "turns"])
async def test_a_fact_comes_back_by_a_conversation_unless_it_was_forgotten_for_good(factories, tmp_path, name, durable):
    # The layers keep what people say of themselves.
    told = "I live in Gdansk." if name == "layers" else TOLD
    target = await opened(factories[name], tmp_path)
    receipt = await target.add([Item(text=told)], ANN)
    assert await target.delete(Ref(id=receipt.items[0].id, durable=durable), ANN)
    assert not any("Gdansk" in text for text in await texts(target))
    await target.say(told, ANN)
    await target.settle()
    await target.end_session(ANN, "explicit") if name == "layers" else None
    left = await texts(target)
    assert any("Gdansk" in text for text in left) is not durable, left
    await target.close()


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize(("name", "rows"), [("pipeline", "rows"), ("turns", "jsonl")])
async def test_a_snapshot_brings_a_fact_back_unless_it_was_forgotten_for_good(factories, tmp_path, name, rows, durable):
    target = await opened(factories[name], tmp_path)
    receipt = await target.add([Item(text=TOLD)], ANN)
    exported = await target.run("export", {}, ANN)
    await target.delete(Ref(id=receipt.items[0].id, durable=durable), ANN)
    # One that takes all rows or none refuses; the other leaves the row out.
    with pytest.raises(Refused, match="forgotten for good") if durable and name == "turns" else nullcontext():
        await target.run("import", exported if isinstance(exported, dict) else {rows: exported}, ANN)
    left = await texts(target)
    assert any("Gdansk" in text for text in left) is not durable, left
    await target.close()


async def test_a_memory_in_memory_alone_forgets_for_good_too(factories, tmp_path):
    target = await opened(factories["layers"], tmp_path, mode="incognito")
    receipt = await target.add([Item(text=TOLD)], ANN)
    await target.delete(Ref(id=receipt.items[0].id, durable=True), ANN)
    (again,) = (await target.add([Item(text=TOLD)], ANN)).items
    assert (again.outcome, again.reason) == ("dropped", "it was forgotten for good")
    await target.close()
    assert not list(tmp_path.rglob("forgotten*"))


@pytest.mark.parametrize(("name", "store"), [("layers", "postgres"), ("turns", "postgres"), ("turns", "sqlite")])
def test_forgetting_for_good_is_declared_where_it_is_possible(factories, name, store):
    assert ("delete.durable" in factories[name].capabilities({"store": store})) is (store == "sqlite")
