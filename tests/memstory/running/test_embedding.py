"""How much of an operation was embedding, as recordings tell it."""

from __future__ import annotations

import pytest

from memstory.contract.target import Environment, TargetFactory
from memstory.controls import Oracle
from memstory.language.stories import parse_stories
from memstory.playing import play
from memstory.running.runner import RunOptions
from memstory.targets.embedders import Embedders

STORY = """
story: E1
title: Some steps embed
steps:
  - add: tea
  - list:
  - new_session:
  - parallel: {times: 2, steps: [{add: milk}]}
"""
SECONDS = 2.0


class Watch:
    """Stands for a stopwatch: each text takes two seconds."""

    seconds = 0.0


class Embedding(Oracle):
    """Embeds what it adds, and nothing else."""

    async def open(self, env, clock):
        self.embedding = Watch()
        await super().open(env, clock)

    async def add(self, items, scope):
        self.embedding.seconds += SECONDS * len(items)
        return await super().add(items, scope)


class EmbeddingFactory(TargetFactory):
    name, spec = "embedding", "embedding_target:Made"
    kind = Embedding

    def capabilities(self, options):
        return frozenset({"add", "list"})

    def target(self):
        return self.kind()


async def seconds_of(factory, tmp_path, *, hosted=False):
    (story,) = parse_stories(STORY, "e.story.yaml")
    result = await play(story, factory, tmp_path / "work", options=RunOptions(hosted=hosted))
    assert result.outcome == "passed", result.reason
    return [(step.op, step.embedding_seconds) for step in result.trials[0].recording.steps]


@pytest.mark.parametrize("hosted", [False, True])
async def test_steps_record_it_in_this_process_and_in_another(tmp_path, importable, hosted):
    found = await seconds_of(importable(EmbeddingFactory), tmp_path, hosted=hosted)
    assert found[:3] == [("add", SECONDS), ("list", 0.0), ("new_session", None)]


async def test_of_steps_at_once_nobody_says_whose_it_was(tmp_path):
    assert ("add", None) in (await seconds_of(EmbeddingFactory(), tmp_path))[3:]


async def test_a_target_that_counts_nothing_says_nothing(tmp_path):
    factory = EmbeddingFactory()
    factory.kind = Oracle
    assert {seconds for _, seconds in await seconds_of(factory, tmp_path)} == {None}


class One:
    model = "one"

    async def embed(self, texts, purpose):
        return [[1.0] for _ in texts]


async def test_an_embedder_that_many_targets_share_counts_its_time():
    embedder = Embedders({"minilm": One()}).of(Environment(workspace="w", owner="ann"))
    await embedder.embed(["a"], "query")
    assert 0 < embedder.watch.seconds < 1


async def test_the_vectors_of_a_story_are_timed_too():
    embedder = Embedders().of(Environment(workspace="w", owner="ann", vectors={"a": [1.0]}))
    await embedder.embed(["a"], "query")
    assert 0 < embedder.watch.seconds < 1
