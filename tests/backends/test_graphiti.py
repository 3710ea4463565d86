"""Graphiti with a scripted model: facts are found, end where a newer one contradicts them, and keep to their user."""

import json

import pytest

from memstory.contract.errors import StoryError
from memstory.contract.target import Item, Query, Ref, Scope
from memstory.targets.embedders import Embedders
from memstory.targets.vendors.graphiti import GraphitiFactory

vendor = "graphiti_core"
ANN, BOB = Scope(user="ann"), Scope(user="bob.b")
EXTRACTS = "You are an expert fact extractor"


def fact(city):
    edge = {
        "source_entity_name": "Ana", "target_entity_name": city, "relation_type": "LIVES_IN",
        "fact": f"Ana lives in {city}", "valid_at": None, "invalid_at": None, "episode_indices": [0],
    }  # fmt: skip
    return json.dumps({"edges": [edge]})


def entities(*names):
    found = [{"name": name, "entity_type_id": 0, "episode_indices": [0]} for name in names]
    return json.dumps({"extracted_entities": found})


def prompt(begin, *more, reply):
    return {"when": {"contains": [begin, *more]}, "reply": reply}


RULES = [
    prompt("You are an entity extraction specialist", "Faro", reply=entities("Ana", "Faro")),
    prompt("You are an entity extraction specialist", reply=entities("Ana", "Porto")),
    prompt(EXTRACTS, "user: I live in Faro", reply=fact("Faro")),
    prompt(EXTRACTS, reply=fact("Porto")),
    prompt("You extract temporal bounds", "Faro", reply='{"valid_at": "2026-01-02T12:00:00Z", "invalid_at": null}'),
    prompt("You extract temporal bounds", reply='{"valid_at": "2026-01-01T12:00:00Z", "invalid_at": null}'),
    prompt("You are a fact deduplication assistant", reply='{"duplicate_facts": [], "contradicted_facts": [0]}'),
    prompt("You are an entity deduplication", reply='{"entity_resolutions": []}'),
]


@pytest.fixture
def factory(letters):
    return GraphitiFactory(Embedders({"minilm": letters}))


async def test_facts_are_found_end_and_keep_to_their_user(factory, opened):
    async with opened(factory, model_rules=RULES) as target:
        (item,) = (await target.add([Item(text="I live in Porto.")], ANN)).items
        assert (item.text, item.outcome) == ("Ana lives in Porto", "stored")
        assert [hit.id for hit in await target.search(Query(text="where does Ana live"), ANN)] == [item.id]
        assert await target.search(Query(text="where does Ana live"), BOB) == []
        assert await target.list(BOB) == []
        assert (target.model_use.calls, target.model_use.failed) == (3, 0)
        assert (await target.about())["infer"] == "scripted"


async def test_a_fact_ends_where_a_newer_one_contradicts_it(factory, opened):
    async with opened(factory, model_rules=RULES) as target:
        for text in ("I live in Porto.", "I live in Faro."):
            await target.add([Item(text=text)], ANN)
        assert [hit.text for hit in await target.list(ANN)] == ["Ana lives in Faro"]
        assert [hit.text for hit in await target.search(Query(text="where does Ana live"), ANN)] == [
            "Ana lives in Faro"
        ]


async def test_what_is_deleted_is_gone(factory, opened):
    async with opened(factory, model_rules=RULES) as target:
        (item,) = (await target.add([Item(text="I live in Porto.")], ANN)).items
        assert await target.delete(Ref(id=item.id), ANN)
        assert not await target.delete(Ref(id=item.id), ANN)
        assert await target.search(Query(text="where does Ana live"), ANN) == []


async def test_what_no_rule_answers_is_the_storys_fault(factory, opened):
    async with opened(factory, model_rules=[prompt("coffee", reply="no")]) as target:
        with pytest.raises(StoryError, match="no rule under `model:` fits"):
            await target.add([Item(text="I live in Porto.")], ANN)
