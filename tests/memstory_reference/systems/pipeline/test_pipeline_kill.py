"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

import os
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count

import numpy as np
import pytest

from memstory_reference.composition.pipeline import open_pipeline
from memstory_reference.systems.pipeline.chunk import Utterance
from memstory_reference.systems.pipeline.config import PipelineConfig

OWNERS = ("ana", "bob", "cid")
CONFIG = PipelineConfig(store_threshold=0, compression_threshold=3, min_chunk_tokens=1)


class Ticking:
    """A clock that goes on by a second each time, across processes by the step of the writer."""

    def __init__(self):
        self.seconds = 0

    def now(self):
        self.seconds += 1
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


class HashedEmbedder:
    model, dimension = "hashed", 16

    async def embed(self, texts, purpose):
        seeds = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(16) for seed in seeds]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


async def opened(folder):
    embedder, clock, run = HashedEmbedder(), Ticking(), os.urandom(8).hex()
    numbers = count()
    service = await open_pipeline(
        folder, embedder=embedder, chat=None, clock=clock, new_id=lambda: f"{run}-{next(numbers)}", config=CONFIG
    )
    return service, clock


def said(step):
    text = f"event {step} came\n\nthen event {step} went"
    return [Utterance(text=text, session_id=f"s{step:06}"), Utterance(text=f"I hate thing {step}", session_id="s")]


def contents(step):
    return {f"event {step} came", f"then event {step} went", f"I hate thing {step}"}


async def write(folder, done, acknowledge):
    """Write until killed; every third step also forgets the memories of the step before and compresses."""
    service, clock = await opened(folder)
    for step in count(min(done.values())):
        clock.seconds = step * 100
        for user in OWNERS:
            await service.ingest_all(said(step), user)
            if step % 3 == 2:
                gone = [one.id for one in await service.memories(user) if one.content in contents(step - 1)]
                await service.delete(gone, user)
                await service.compress(user)
            if step % 5 == 4:
                await service.recall("event", user)
            acknowledge(user, step)


def kept_after(steps):
    forgotten = {content for step in range(2, steps, 3) for content in contents(step - 1)}
    return {content for step in range(steps) for content in contents(step)} - forgotten


async def verify(folder, done):
    service, _ = await opened(folder)
    await service.settle()
    for user, steps in done.items():
        memories = [one for one in await service.memories(user) if not one.compression_source]
        found = {one.content for one in memories}
        assert len(found) == len(memories), (user, "a text is there twice")
        # The step under way may be there or not, and what it forgets may be gone.
        open_end = contents(steps) | (contents(steps - 1) if steps % 3 == 2 else set())
        assert found - open_end == kept_after(steps) - open_end, (user, steps, found ^ kept_after(steps))
        assert await service.centroid_drift(user) <= 1e-6, user
        everything = await service.memories(user)
        summaries = {one.id for one in everything if one.compression_source}
        stood_for = {one.summary_id for one in everything if one.compressed}
        assert stood_for == summaries, (user, "a summary without originals, or originals without a summary")
        shown = [one for one in everything if one.key is None and not one.compressed]
        status = await service.status(user)
        assert (status["vectors"], status["pending"]) == (len(shown), 0), (user, status, len(shown))
        for one in shown[:3]:
            result = await service.recall(one.content, user, 1, memory_types=[one.memory_type])
            assert result.memories[0].memory.id == one.id, (user, one)
    await service.close()


@pytest.mark.doses("kills", 2, 100)
def test_rows_centroid_archive_and_index_agree_after_kills(kill_writers, tmp_path, kills):
    kill_writers(__file__, tmp_path / "store", kills)
