"""Adapters to libraries that are too heavy for every run keep what targets promise; `nox -s backends` installs them."""

import json
import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar

import pytest

from memstory.conformance import TEXTS, TargetContract
from memstory.targets.discovery import GROUP
from memstory.targets.embedders import Embedders, load_embedder
from memstory.targets.vendors.agno import AgnoFactory
from memstory.targets.vendors.langmem import LangmemFactory
from memstory.targets.vendors.llamaindex import LlamaindexFactory, LlamaindexFactsFactory
from memstory.targets.vendors.mem0 import Mem0Factory

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
HEAVY = set(re.findall(r"[\w-]+", " ".join(one for one in PROJECT["dependency-groups"]["backends"] if "[" in str(one))))


def embedders():
    return Embedders({"minilm": load_embedder("minilm")})


class TestMem0(TargetContract):
    vendor = "mem0"
    factory = staticmethod(lambda: Mem0Factory(embedders()))

    @pytest.mark.xfail(strict=True, reason="mem0ai 2.2: get, update and delete take an id and no user")
    def test_users_are_apart(self):
        super().test_users_are_apart()


def keeping(marker, reply, *, first=()):
    """Return rules for a model that keeps each text of the suite as it is; the newest of a prompt is the last added."""
    return [*first, *({"when": {"contains": [marker, text]}, "reply": reply(text)} for text in TEXTS)]


def call(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


EMBEDS_PROMPTS = pytest.mark.skip(reason="it embeds its prompts too: a story for it gives them vectors")


class TestMem0Inferring(TestMem0):
    model_rules = keeping("Memory Extractor", lambda text: json.dumps({"memory": [{"id": "0", "text": text}]}))

    @EMBEDS_PROMPTS
    def test_a_search_goes_by_the_vectors_of_the_story(self):
        super().test_a_search_goes_by_the_vectors_of_the_story()


# Its own dependency imports what LangGraph has renamed.
@pytest.mark.filterwarnings("ignore:Importing Send")
class TestLangmem(TargetContract):
    vendor = "langmem"
    factory = staticmethod(lambda: LangmemFactory(embedders()))
    model_rules = keeping("memory subroutine", lambda text: call("Memory", content=text))

    @EMBEDS_PROMPTS
    def test_a_search_goes_by_the_vectors_of_the_story(self):
        super().test_a_search_goes_by_the_vectors_of_the_story()


class TestLlamaindexFacts(TargetContract):
    vendor = "llama_index"
    factory = LlamaindexFactsFactory
    model_rules = keeping("precise fact extraction", lambda text: f"<facts><fact>{text}</fact></facts>")


class TestAgno(TargetContract):
    vendor = "agno"
    factory = AgnoFactory
    done = ({"when": {"tool_result_contains": "emory"}, "reply": "Done."},)
    model_rules = keeping("Memory Manager", lambda text: call("add_memory", memory=text), first=done)


class TestMem0OnChroma(TestMem0):
    options: ClassVar = {"vector_store": "chroma"}


class TestMem0OnFaiss(TestMem0):
    options: ClassVar = {"vector_store": "faiss"}


NOT_A_UUID = "mem0ai 2.2 on pgvector: `get` of an id that is not a UUID raises, where the other stores find nothing"


class TestMem0OnPgvector(TestMem0):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls, postgres_url):
        cls.options = {"vector_store": "pgvector", "postgres": postgres_url}

    @pytest.mark.xfail(strict=True, reason=NOT_A_UUID)
    def test_a_memory_is_looked_up_by_its_id(self):
        super().test_a_memory_is_looked_up_by_its_id()

    @pytest.mark.xfail(strict=True, reason=NOT_A_UUID)
    def test_an_update_replaces_the_text(self):
        super().test_an_update_replaces_the_text()

    @pytest.mark.xfail(strict=True, reason=NOT_A_UUID)
    def test_deleting_what_is_unknown_says_so(self):
        super().test_deleting_what_is_unknown_says_so()


class TestLlamaindex(TargetContract):
    vendor = "llama_index"
    factory = staticmethod(lambda: LlamaindexFactory(embedders()))

    @pytest.mark.xfail(strict=True, reason="run-llama/llama_index#22701: it keeps to the first session it is asked for")
    def test_users_are_apart(self):
        super().test_users_are_apart()


PECULIAR = {"agno", "graphiti", "langmem", "llamaindex", "llamaindex-facts", "mem0"}
CONTRACTS = {
    f"Test_{entry.name}": type(f"Test_{entry.name}", (TargetContract,), {"factory": entry.load(), "extra": entry.name})
    for entry in entry_points(group=GROUP)
    if entry.name in HEAVY - PECULIAR
}
TestOffered = type("TestOffered", (), CONTRACTS)
