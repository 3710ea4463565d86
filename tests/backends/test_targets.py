"""Adapters to libraries that are too heavy for every run keep what targets promise; `nox -s backends` installs them."""

from typing import ClassVar

import pytest

from memstory.conformance import TargetContract
from memstory.targets.embedders import Embedders
from memstory.targets.frameworks.llamaindex import LlamaindexFactory
from memstory.targets.frameworks.mem0 import Mem0Factory
from memstory.targets.vector_stores.lancedb import LancedbFactory
from memstory.targets.vector_stores.qdrant import QdrantFactory
from memstory.targets.vector_stores.txtai import TxtaiFactory
from memstory_reference.targets.offered import minilm


def embedders():
    return Embedders({"minilm": minilm()})


class TestMem0(TargetContract):
    vendor = "mem0"
    factory = staticmethod(lambda: Mem0Factory(embedders()))

    @pytest.mark.xfail(strict=True, reason="mem0ai 2.2: get, update and delete take an id and no user")
    def test_users_are_apart(self):
        super().test_users_are_apart()


class TestMem0OnChroma(TestMem0):
    options: ClassVar = {"vector_store": "chroma"}


class TestMem0OnFaiss(TestMem0):
    options: ClassVar = {"vector_store": "faiss"}


class TestLlamaindex(TargetContract):
    vendor = "llama_index"
    factory = staticmethod(lambda: LlamaindexFactory(embedders()))

    @pytest.mark.xfail(strict=True, reason="run-llama/llama_index#22701: it keeps to the first session it is asked for")
    def test_users_are_apart(self):
        super().test_users_are_apart()


class TestQdrant(TargetContract):
    vendor = "qdrant_client"
    factory = staticmethod(lambda: QdrantFactory(embedders()))


class TestLancedb(TargetContract):
    vendor = "lancedb"
    factory = staticmethod(lambda: LancedbFactory(embedders()))


class TestTxtai(TargetContract):
    vendor = "txtai"
    factory = staticmethod(lambda: TxtaiFactory(embedders()))
