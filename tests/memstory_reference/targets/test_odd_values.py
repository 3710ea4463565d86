"""Values at the edge: a count of 0 and a key without a character, in each of the six memories."""

from __future__ import annotations

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused
from memstory.contract.target import Environment, Item, Query, Ref, Scope
from memstory.targets.discovery import load_targets

ANN = Scope(user="case.ann", session="one")
SYSTEMS = ("layers", "manager", "observations", "pipeline", "topics", "turns")


@pytest.fixture(scope="module")
def factories():
    return load_targets(["reference"], {})


@pytest.fixture
async def target(factories, tmp_path, name):
    opened = factories[name].target()
    env = Environment(workspace=str(tmp_path), owner="case", options={"embedder": "random"})
    await opened.open(env, StoryClock())
    yield opened
    await opened.close()


@pytest.mark.parametrize("name", SYSTEMS)
async def test_none_is_found_where_none_is_asked_for(target):
    await target.add([Item(text="I like green tea from Assam.")], ANN)
    await target.settle()
    try:
        found = await target.search(Query(text="Who likes green tea?", top_k=0), ANN)
    except Refused as refused:
        assert "top_k" in str(refused)  # noqa: PT017  (one of two right answers)
    else:
        assert list(found) == []


@pytest.mark.parametrize("name", SYSTEMS)
async def test_a_key_without_a_character_is_a_key_or_refused(target):
    try:
        for text in ("The ferry leaves at nine.", "The ferry leaves at ten."):
            await target.add([Item(text=text, key="")], ANN)
    except (Refused, NotSupported) as refused:
        # What the key is to that memory: for one of them the id of a run.
        assert [word for word in ("key", "topic", "id is blank") if word in str(refused)]  # noqa: PT017  (as above)
        assert list(await target.list(ANN)) == []
    else:
        assert [hit.text for hit in await target.list(ANN)] == ["The ferry leaves at ten."]
        assert (await target.get(Ref(key=""), ANN)).text == "The ferry leaves at ten."
