"""How near a text must be to be found: by default the embedding model says, for cosines of two models are not alike."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from itertools import count

import pytest

from memstory.contract.target import Item, Scope
from memstory.models.scripted_chat import ScriptedChat
from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.embedding.minilm import MiniLmEmbedder
from memstory_reference.adapters.embedding.prefixes import profile_of
from memstory_reference.composition.declaration import MemoryPorts
from memstory_reference.composition.manager import open_manager
from memstory_reference.composition.topics import open_topics, open_topics_service
from memstory_reference.systems.manager.memories import MemoryType
from memstory_reference.systems.manager.settings import ManagerSettings
from memstory_reference.systems.topics.settings import TopicsSettings

NOMIC, MINILM, UNKNOWN = "nomic-embed-text:v1.5", "all-MiniLM-L6-v2", "unheard-of"
COSINES = {f"at {one}": one for one in (0.19, 0.2, 0.29, 0.3)}
SILENT = [{"reply": "Noted."}]

FACT = "Prices in the brewery's Kettle are kept in whole cents, never as floating-point euros."
QUESTION = "What type do prices have in the stock system?"
"""Their cosine is .245 by MiniLM."""


class Topics:
    """Engrams of the topics memory."""

    def __init__(self, folder, **changes):
        self._settings = TopicsSettings.default().merge({"chroma_path": str(folder), **changes}, "test")

    @asynccontextmanager
    async def found(self, embedder):
        numbers = count()
        ports = MemoryPorts(embedder=embedder, chat=ScriptedChat(SILENT), new_id=lambda: f"n{next(numbers)}")
        system = await open_topics(self._settings, ports)

        async def search(texts, query):
            await system.add([Item(text=text) for text in texts], Scope(user="ann"))
            return [one.text for one in await system.search_episodic("ann", query)]

        yield search
        await system.close()


class Manager:
    """Facts of the manager memory."""

    def __init__(self, folder, **changes):
        self._settings = ManagerSettings.default().merge({"path": str(folder), **changes}, "test")

    @asynccontextmanager
    async def found(self, embedder):
        system = await open_manager(self._settings, MemoryPorts(embedder=embedder, chat=ScriptedChat(SILENT)))

        async def search(texts, query):
            for text in texts:
                await system.store("ann", text, MemoryType.FACT)
            return [one.memory.content for one in await system.search_memories("ann", query)]

        yield search
        await system.close()


def vectors_of(model):
    """Return an embedder with the profile of `model`, by which each text is as near to the query as it says."""
    table = {text: [cosine, math.sqrt(1 - cosine**2)] for text, cosine in COSINES.items()}
    return FixedVectors({"query": [1, 0], **table}, profile=profile_of(model))


@pytest.mark.parametrize("memory", [Topics, Manager])
async def test_a_plain_question_finds_its_fact_though_minilm_puts_them_below_three_tenths(
    memory, tmp_path, minilm_weights
):
    async with memory(tmp_path).found(MiniLmEmbedder(minilm_weights)) as search:
        assert await search([FACT, "The lighthouse was painted white in spring."], QUESTION) == [FACT]


@pytest.mark.parametrize("memory", [Topics, Manager])
@pytest.mark.parametrize(
    ("model", "changes", "found"),
    [
        (NOMIC, {}, ["at 0.3"]),
        (UNKNOWN, {}, ["at 0.3"]),
        (MINILM, {}, ["at 0.3", "at 0.29", "at 0.2"]),
        (MINILM, {"min_score": None}, ["at 0.3", "at 0.29", "at 0.2"]),
        (MINILM, {"min_score": 0.3}, ["at 0.3"]),
        (NOMIC, {"min_score": 0}, ["at 0.3", "at 0.29", "at 0.2", "at 0.19"]),
    ],
)
async def test_the_model_says_how_near_is_near_enough_unless_a_setting_does(memory, model, changes, found, tmp_path):
    async with memory(tmp_path, **changes).found(vectors_of(model)) as search:
        assert await search(list(COSINES), "query") == found


async def test_the_memory_of_several_processes_has_the_floor_of_the_model_too(tmp_path):
    settings, embedder = TopicsSettings.default().merge({"chroma_path": str(tmp_path)}, "test"), vectors_of(MINILM)
    service = await open_topics_service(settings, MemoryPorts(embedder=embedder))
    await service.add([Item(text=text) for text in COSINES], Scope(user="ann"))
    assert len(await service.search_episodic("ann", "query")) == 3
    await service.close()
