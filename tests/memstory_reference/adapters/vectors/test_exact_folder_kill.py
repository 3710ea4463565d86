"""SIGKILL at random moments of writing: `killing.py` forks and kills what `write` does, then calls `verify`."""

import numpy as np
import pytest

from memstory_reference.adapters.vectors.exact_store import open_exact_folder
from memstory_reference.ports import Record

OWNERS = ("ana", "bob", "cid")
IDS, DIMENSION = 1_500, 64


def vector_of(owner, row_id, step):
    numbers = np.random.default_rng([OWNERS.index(owner), int(row_id[1:]), step])
    return numbers.standard_normal(DIMENSION).astype(np.float32)


def written(step):
    return [] if step % 4 == 3 else [f"r{(step * 37 + n) % IDS}" for n in range(40)]


def deleted(step):
    return [f"r{(step * 61 + n) % IDS}" for n in range(5)] if step % 4 == 3 else []


def content(row_id, step):
    return f"{row_id} {step}", {"step": step, f"key{step % 5}": True}


def expected(steps):
    """Return what each row holds after so many steps; every step may be done twice."""
    rows = {}
    for step in range(steps):
        rows |= {one: content(one, step) for one in written(step)}
        for one in deleted(step):
            rows.pop(one, None)
    return rows


async def opened(folder):
    return open_exact_folder(folder, model="fixed")


async def write(folder, done, acknowledge):
    """Write until killed; a step is acknowledged once its call has returned."""
    store = await opened(folder)
    indexes = {owner: await store.index("memory", owner) for owner in OWNERS}
    for step in range(min(done.values()), 1_000_000):
        for owner, index in indexes.items():
            if ids := written(step):
                await index.upsert([row_of(owner, one, step) for one in ids])
            else:
                await index.delete(deleted(step))
            await index.query(vector_of(owner, "r0", step), 1)
            acknowledge(owner, step)


def row_of(owner, row_id, step):
    text, metadata = content(row_id, step)
    return Record(id=row_id, text=text, metadata=metadata, vector=vector_of(owner, row_id, step))


async def verify(folder, done):
    """Compare every row with what was acknowledged; the one step that was under way may be there or not."""
    store = await opened(folder)
    for owner, steps in done.items():
        index = await store.index("memory", owner)
        found = {row.id: row for row in await index.list()}
        before, after = expected(steps), expected(steps + 1)
        for one in before.keys() | after.keys() | found.keys():
            real = (found[one].text, dict(found[one].metadata)) if one in found else None
            assert real in (before.get(one), after.get(one)), (owner, one, real, before.get(one), after.get(one))
        for row in list(found.values())[:5]:
            best = (await index.query(vector_of(owner, row.id, row.metadata["step"]), 1))[0]
            assert (best.record.id, best.similarity) == (row.id, 1.0), (owner, row.id, best)
    await store.close()


@pytest.mark.doses("kills", 5, 100)
def test_nothing_acknowledged_is_lost_to_kills(kill_writers, tmp_path, kills):
    kill_writers(__file__, tmp_path / "store", kills)
