"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

from datetime import UTC, datetime
from itertools import count

import numpy as np
import pytest

from memstory_reference.composition.observations import open_observations
from memstory_reference.systems.observations.config import ObservationsConfig
from memstory_reference.systems.observations.observation import Observation

OWNERS = ("ana", "bob", "cid")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Noon:
    def now(self):
        return NOON


class NumberedEmbedder:
    """A vector from the number in a text; near numbers are not near."""

    model, dimension = "numbered", 16

    async def embed(self, texts, purpose):
        rows = [np.random.default_rng(int(text.rpartition(" ")[2])).standard_normal(16) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


def observation(number):
    return Observation(
        id=f"run-{number}",
        title=f"Run {number}",
        narrative=f"word{number} {number}",
        facts=(),
        task=f"task {number}",
        timestamp=NOON,
    )


async def opened(folder):
    return await open_observations(
        folder, embedder=NumberedEmbedder(), chat=None, clock=Noon(), new_id=str, config=ObservationsConfig()
    )


async def write(folder, done, acknowledge):
    """Write until killed: three runs a step; every fourth step also forgets the first run of the step before."""
    service = await opened(folder)
    for step in count(min(done.values())):
        for owner in OWNERS:
            await service.store([observation(3 * step + place) for place in range(3)], owner)
            if step % 4 == 3:
                await service.delete([f"run-{3 * step - 3}"], owner)
            acknowledge(owner, step)


def kept_after(steps):
    return {f"run-{n}" for n in range(3 * steps)} - {f"run-{3 * step - 3}" for step in range(3, steps, 4)}


async def verify(folder, done):
    service = await opened(folder)
    for owner, steps in done.items():
        found = {one.id for one in await service.recent(owner)}
        # The step under way may be there or not, in part; what it forgets may be gone.
        under_way = {f"run-{number}" for number in range(3 * steps - 3, 3 * steps + 3)}
        assert found - under_way == kept_after(steps) - under_way, (owner, steps, found ^ kept_after(steps))
        assert not kept_after(steps) - found - {f"run-{3 * steps - 3}"}, (owner, steps)
        status = await service.status(owner)
        assert (status["vectors"], status["pending"]) == (status["observations"], 0), (owner, status)
        for one in sorted(found)[-3:]:
            best = (await service.search(f"word {one.removeprefix('run-')}", owner, min_sim=0.99))[0]
            assert best.observation.id == one, (owner, one, best)
    await service.close()


@pytest.mark.doses("kills", 3, 150)
def test_nothing_acknowledged_is_lost_and_both_indexes_agree_after_kills(kill_writers, tmp_path, kills):
    kill_writers(__file__, tmp_path / "store", kills)
