from memstory.contract.target import Environment
from memstory.targets import embedders
from memstory.targets.embedders import Embedders
from memstory.targets.embedding_factory import EmbeddingFactory, vector_length

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


class Searching(EmbeddingFactory):
    able = frozenset({"add", "search"})


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


def test_what_it_can_do_is_what_its_class_says():
    assert Searching().capabilities({"embedder": "minilm"}) == {"add", "search"}


async def test_the_length_of_vectors_is_asked_of_the_embedder():
    embedder = Counted()
    assert await vector_length(embedder, Environment(**WORKSPACE)) == 3
    assert [purpose for _, purpose in embedder.asked] == ["document"]


async def test_a_story_with_vectors_is_asked_for_a_text_that_has_one():
    env = Environment(**WORKSPACE, vectors={"tea": [0.6, 0.8]})
    embedder = Embedders().of(env)
    assert await vector_length(embedder, env) == 2
