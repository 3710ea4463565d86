from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from memstory.contract.errors import SetupError, StoryError
from memstory.contract.target import Environment
from memstory.targets import embedders
from memstory.targets.embedders import Embedders, StoryVectors, load_embedder

ENV = Environment(workspace="w", owner="ann")


@pytest.fixture
def offered(monkeypatch):
    points = [
        EntryPoint(name="minilm", value="memstory_reference.targets.offered:minilm", group=embedders.GROUP),
        EntryPoint(name="gone", value="no_such_package_at_all:make", group=embedders.GROUP),
    ]
    monkeypatch.setattr(embedders, "entry_points", lambda group: points if group == embedders.GROUP else [])


@pytest.mark.usefixtures("offered")
def test_an_unknown_embedder_is_refused_with_the_nearest_name():
    with pytest.raises(
        SetupError, match=r"no embedder is named 'minilim'\. Did you mean 'minilm'\? Known: gone, minilm"
    ):
        load_embedder("minilim")


@pytest.mark.usefixtures("offered")
def test_a_missing_package_is_named_with_what_to_type():
    with pytest.raises(SetupError, match=r"'gone' needs the package 'no_such_package_at_all'.*pip install"):
        load_embedder("gone")


def test_an_embedder_is_loaded_once(monkeypatch):
    loaded = []
    monkeypatch.setattr(embedders, "load_embedder", lambda name: loaded.append(name) or object())
    shared = Embedders()
    assert shared.of(ENV) is shared.of(ENV)
    assert loaded == ["minilm"]


async def test_a_text_without_a_vector_is_a_mistake_of_the_story():
    assert await StoryVectors({"a": [1.0]}).embed(["a"], "query") == [[1.0]]
    with pytest.raises(StoryError, match="the story has no vector for 'b'"):
        await StoryVectors({"a": [1.0]}).embed(["b"], "query")


async def test_another_embedder_has_another_name_and_vectors_of_the_same_length():
    env = replace(ENV, vectors={"a": [1.0, 0.0]})
    own, other = Embedders().of(env), Embedders().of(replace(env, other_embedder=True))
    assert (own.model, other.model) == ("fixed-2", "other-fixed-2")
    assert [*await own.embed(["a"], "query"), *await other.embed(["a"], "query")] == [[1.0, 0.0], [0.0, 1.0]]
