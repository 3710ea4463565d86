"""How much of an operation was embedding: whoever embeds, wherever, and however many at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memstory.case import Case
from memstory.controls import Oracle
from memstory.embedding_time import EmbeddingTime, announce, embedding
from memstory.errors import Mark
from memstory.language.story import Step, Story
from memstory.running.runner import RunOptions, run
from memstory.target import Environment, TargetFactory
from memstory.targets.embedders import Embedders

NAP = 0.02
MARK = Mark("a.yaml", 1, 1)


async def embed(seconds=NAP):
    with embedding():
        await asyncio.sleep(seconds)


async def test_what_is_embedded_within_an_operation_is_its_own():
    with EmbeddingTime() as first:
        await embed()
        await asyncio.sleep(NAP)
    with EmbeddingTime() as second:
        await embed(3 * NAP)
    assert NAP <= first.seconds() < second.seconds()
    assert second.seconds() >= 3 * NAP


async def test_an_operation_that_embeds_nothing_says_so_only_for_a_target_that_is_known_to_tell():
    with EmbeddingTime() as time:
        pass
    assert time.seconds() is None
    assert time.seconds(told=True) == 0.0


async def test_an_embedder_makes_itself_known_while_its_target_is_opened():
    with EmbeddingTime() as time:
        announce()
    assert time.is_told
    assert time.seconds() == 0.0


async def test_two_embeddings_at_once_within_one_operation_count_once():
    with EmbeddingTime() as time:
        await asyncio.gather(embed(), embed(2 * NAP))
    assert 2 * NAP <= time.seconds() < 3 * NAP


async def test_operations_at_once_are_told_apart():
    async def operation(count):
        with EmbeddingTime() as time:
            await embed(count * NAP)
        return time.seconds()

    one, three = await asyncio.gather(operation(1), operation(3))
    assert one < three


async def test_a_thread_that_knows_of_no_operation_embeds_for_the_only_one_there_is():
    def work():
        with embedding():
            pass

    with ThreadPoolExecutor(1) as threads, EmbeddingTime() as time:
        await asyncio.get_running_loop().run_in_executor(threads, work)
    assert time.seconds() is not None


async def test_what_might_belong_to_any_of_several_operations_is_said_of_none():
    def work():
        with embedding():
            pass

    with ThreadPoolExecutor(1) as threads:
        loop = asyncio.get_running_loop()
        one, other = EmbeddingTime(), EmbeddingTime()
        with one, other:
            await loop.run_in_executor(threads, work)
    assert (one.seconds(told=True), other.seconds(told=True)) == (None, None)


async def test_a_task_that_an_earlier_operation_started_embeds_for_the_present_one():
    go = asyncio.Event()

    async def background():
        await go.wait()
        await embed()

    with EmbeddingTime() as first:
        task = asyncio.create_task(background())
    with EmbeddingTime() as second:
        go.set()
        await task
    assert first.seconds() is None
    assert second.seconds() >= NAP


async def test_what_goes_on_after_an_operation_is_not_counted():
    with EmbeddingTime() as time:
        task = asyncio.create_task(embed(3 * NAP))
        await asyncio.sleep(NAP)
    counted = time.seconds()
    await task
    assert time.seconds() == counted < 3 * NAP


class Slow:
    model = "slow"

    async def embed(self, texts, purpose):
        await asyncio.sleep(NAP)
        return [[1.0] for _ in texts]

    async def close(self):
        return None


class Embedding(Oracle):
    """Embeds what it adds, and nothing when it searches."""

    def __init__(self, embedders):
        super().__init__()
        self._embedders = embedders

    async def open(self, env, clock):
        self._embedder = self._embedders.of(env)
        await super().open(env, clock)

    async def add(self, items, scope):
        await self._embedder.embed([item.text for item in items], "document")
        return await super().add(items, scope)


class EmbeddingFactory(TargetFactory):
    name, spec = "embedding", "embedding_target:Made"

    def __init__(self):
        self._embedders = Embedders({"minilm": Slow()})

    def capabilities(self, options):
        return frozenset({"add", "search"})

    def target(self):
        return Embedding(self._embedders)


CHILD = """
import importlib.util
found = importlib.util.spec_from_file_location("embedding_tests", {path!r})
tests = importlib.util.module_from_spec(found)
found.loader.exec_module(tests)
Made = tests.EmbeddingFactory
"""


@pytest.mark.parametrize("hosted", [False, True])
async def test_steps_record_it_in_this_process_and_in_another(tmp_path, monkeypatch, hosted):
    (tmp_path / "embedding_target.py").write_text(CHILD.format(path=str(Path(__file__))))
    monkeypatch.syspath_prepend(str(tmp_path))
    steps = (
        Step(op="add", args={"items": [{"text": "Elixir"}]}, mark=MARK),
        Step(op="search", args={"query": "Elixir"}, mark=MARK),
        Step(op="new_session", args={}, mark=MARK),
    )
    case = Case(story=Story(id="T", title="t", mark=MARK, digest="d", steps=steps), target="embedding")
    recording = await run(case, EmbeddingFactory(), tmp_path / "work", RunOptions(hosted=hosted))
    assert recording.failure is None
    add, search, session = recording.steps
    assert NAP <= add.embedding_seconds <= add.seconds
    assert search.embedding_seconds == 0.0
    assert session.embedding_seconds is None


async def test_the_vectors_of_a_story_are_timed_too():
    env = Environment(workspace="w", owner="ann", vectors={"a": [1.0]})
    with EmbeddingTime() as time:
        await Embedders().of(env).embed(["a"], "query")
    assert 0 < time.seconds() < 1
