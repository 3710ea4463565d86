from contextlib import suppress
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from memstory.contract import installation
from memstory.contract.clock import StoryClock
from memstory.contract.errors import SetupError, StoryError
from memstory.contract.target import Environment, Query, Request, Scope, Target
from memstory.targets import embedders
from memstory.targets.embedders import (
    BlockingEmbedder,
    Embedders,
    EmbeddingFactory,
    EmbeddingTarget,
    StoryVectors,
    TimedEmbedder,
    load_embedder,
    vector_length,
)
from memstory.targets.one_thread import OneThread

ENV = Environment(workspace="w", owner="ann")


@pytest.fixture
def offered(monkeypatch):
    points = [
        EntryPoint(name="minilm", value="memstory_reference.targets.offered:minilm", group=embedders.GROUP),
        EntryPoint(name="gone", value="no_such_package_at_all:make", group=embedders.GROUP),
    ]
    monkeypatch.setattr(installation, "entry_points", lambda group: points if group == embedders.GROUP else [])


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


@pytest.mark.usefixtures("offered")
def test_a_name_with_more_behind_a_colon_is_looked_up_without_it():
    with pytest.raises(SetupError, match=r"no embedder is named 'opnai:tiny'\. Known"):
        load_embedder("opnai:tiny")
    with pytest.raises(SetupError, match=r"'gone:tiny' needs the package 'no_such_package_at_all'"):
        load_embedder("gone:tiny")


async def test_the_embedder_that_counts_words_comes_with_the_harness():
    tea, more_tea, bread = await load_embedder("words").embed(["tea", "Tea!", "bread"], "document")
    assert (len(tea), tea == more_tea, tea == bread) == (512, True, False)
    with pytest.raises(SetupError, match="'words:large'"):
        load_embedder("words:large")


def test_what_makes_an_embedder_gets_the_rest_of_its_name_and_the_options(monkeypatch):
    point = EntryPoint(name="mine", value="builtins:dict", group=embedders.GROUP)
    monkeypatch.setattr(installation, "entry_points", lambda **_: [point])
    asked = []
    monkeypatch.setattr(EntryPoint, "load", lambda _: lambda *given: asked.append(given) or object())
    Embedders().of(replace(ENV, options={"embedder": "mine:a:b", "ollama_host": "http://box"}))
    assert asked == [("a:b", {"embedder": "mine:a:b", "ollama_host": "http://box"})]


def test_an_embedder_is_loaded_once(monkeypatch):
    loaded = []
    monkeypatch.setattr(embedders, "load_embedder", lambda name, _options: loaded.append(name) or object())
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


WORKSPACE = {"workspace": "unused", "owner": "ann"}


class Counted:
    """Vectors of three numbers; says how often it was asked and closed."""

    model = "counted"

    def __init__(self):
        self.asked, self.closed = [], 0

    async def embed(self, texts, purpose):
        self.asked += [(text, purpose) for text in texts]
        return [[1.0, 0.0, 0.0] for _ in texts]

    async def close(self):
        self.closed += 1


class Unreachable:
    """Gives no vectors."""

    model = "unreachable"

    async def embed(self, texts, purpose):
        raise SetupError("nothing answers at http://127.0.0.1:9")

    async def close(self):
        pass


class SearchingTarget(EmbeddingTarget):
    capabilities = frozenset({"add", "search"})

    def store_name(self):
        return "a store"


class QuietTarget(SearchingTarget):
    """Answers that it found nothing, whatever stood in its way."""

    async def open(self, env, clock):
        self.choose_embedder(env)

    async def search(self, query, scope):
        with suppress(SetupError):
            await self.embedder.embed([query.text], "query")
        return []


async def test_an_embedder_that_gave_no_vectors_is_no_empty_memory():
    target = QuietTarget(Embedders({"minilm": Unreachable()}))
    await target.open(ENV, StoryClock())
    asked = Request.of(Target.search, Query(text="tea"), Scope(user="ann"))
    for _ in range(2):
        with pytest.raises(SetupError, match=r"127\.0\.0\.1:9"):
            await target.perform(asked)
    assert await target.perform(Request.of(Target.about)) == {"embedder": "unreachable", "store": "a store"}


class Searching(EmbeddingFactory):
    adapter = SearchingTarget


async def test_embedders_are_closed_with_the_factory_and_not_before():
    embedder = Counted()
    factory = Searching(Embedders({"minilm": embedder}))
    assert embedder.closed == 0
    await factory.stop()
    assert embedder.closed == 1


async def test_a_factory_without_embedders_of_its_own_stops_without_having_loaded_any(monkeypatch):
    loaded = []
    monkeypatch.setattr(embedders, "load_embedder", loaded.append)
    await Searching().stop()
    assert loaded == []


def test_what_it_can_do_is_what_the_class_of_its_targets_says():
    assert Searching().capabilities({"embedder": "minilm"}) == {"add", "search", "fault.embedder", "fault.nan"}


async def test_the_length_of_vectors_is_asked_of_the_embedder():
    embedder = Counted()
    assert await vector_length(embedder, Environment(**WORKSPACE)) == 3
    assert [purpose for _, purpose in embedder.asked] == ["document"]


async def test_a_story_with_vectors_is_asked_for_a_text_that_has_one():
    env = Environment(**WORKSPACE, vectors={"tea": [0.6, 0.8]})
    embedder = Embedders().of(env)
    assert await vector_length(embedder, env) == 2


class Lengths:
    model = "lengths"

    async def embed(self, texts, purpose):
        return [[float(len(text)), float(purpose == "query")] for text in texts]

    async def close(self):
        pass


async def test_a_thread_gets_its_vectors_from_the_event_loop():
    thread, embedder = OneThread("test"), BlockingEmbedder(Lengths())
    assert await thread.run(embedder.embed, ["a", "abc"], "query") == [[1.0, 1.0], [3.0, 1.0]]
    thread.close()


async def test_the_time_of_embedding_is_counted_for_a_thread_too():
    thread, timed = OneThread("test"), TimedEmbedder(Lengths())
    await thread.run(BlockingEmbedder(timed).embed, ["a"], "document")
    thread.close()
    assert 0 < timed.watch.seconds < 1
