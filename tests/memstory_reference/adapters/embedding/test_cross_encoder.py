import sys
from types import ModuleType

import pytest

from memstory.contract.errors import SetupError
from memstory_reference import open_memory
from memstory_reference.adapters.embedding.cross_encoder import CrossEncoderReranker


@pytest.fixture
def library(monkeypatch):
    """A stand-in for sentence-transformers that scores by length, and counts how often a model is loaded."""
    module = ModuleType("sentence_transformers")
    module.loaded = []

    class CrossEncoder:
        def __init__(self, model):
            if model == "missing":
                raise OSError("no such model")
            module.loaded.append(model)

        def predict(self, pairs):
            return [len(text) - len(query) for query, text in pairs]

    module.CrossEncoder = CrossEncoder
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return module


async def test_each_text_is_scored_with_the_query_and_the_model_loaded_once(library):
    reranker = CrossEncoderReranker("folder")
    assert await reranker.scores("ab", ["abc", "a"]) == [1.0, -1.0]
    assert await reranker.scores("ab", ["ab"]) == [0.0]
    assert library.loaded == ["folder"]
    assert reranker.name == "cross-encoder:folder"


def test_a_pipeline_whose_settings_name_one_finds_in_its_order(library, tmp_path):
    settings = {"embedding_model": "words", "reranker": "cross-encoder:folder", "reranker_enabled": True}
    with open_memory("pipeline", tmp_path, owner="ana", **settings) as memory:
        for text in ("My boat is called Heron.", "My boat lies in the harbour of Bergen since May."):
            memory.add(text)
        found = memory.search("What is my boat called?")
    assert [hit.text.split()[2] for hit in found] == ["lies", "is"]
    assert found[0].explain["rerank"] == "cross-encoder:folder"
    assert library.loaded == ["folder"]


async def test_nothing_to_score_loads_nothing(library):
    assert await CrossEncoderReranker().scores("ab", []) == []
    assert library.loaded == []


@pytest.mark.usefixtures("library")
async def test_a_missing_model_says_what_to_type():
    with pytest.raises(SetupError, match=r"'missing' cannot be loaded: no such model\. Type 'pip install"):
        await CrossEncoderReranker("missing").scores("ab", ["a"])


async def test_a_missing_library_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SetupError, match="pip install sentence-transformers"):
        await CrossEncoderReranker().scores("ab", ["a"])
