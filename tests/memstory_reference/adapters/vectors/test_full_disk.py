"""A disk that is really full: a tmpfs of a few megabytes, which only root may mount."""

import asyncio

import pytest

from memstory.contract.errors import MemstoryError
from memstory_reference.adapters.vectors.exact_store import open_exact_folder


@pytest.mark.slow
async def test_on_a_full_disk_nothing_acknowledged_is_lost_and_close_returns(small_disk, rows_of, spread):
    folder, enlarge = small_disk
    store = open_exact_folder(folder / "store", model="fixed")
    index = await store.index("memory", "ana")
    kept, refused = [], 0
    async with asyncio.timeout(120):
        for batch in range(60):
            rows = rows_of(spread(100, seed=batch), prefix=f"b{batch:02}-")
            try:
                await index.upsert(rows)
                kept += [row.id for row in rows]
                (found,) = await index.query(rows[0].vector, 1)
                assert found.record.id == rows[0].id
            except MemstoryError:
                refused += 1
        assert {row.id for row in await index.list()} == set(kept)
        await store.close()
    assert kept
    assert refused
    enlarge()
    store = open_exact_folder(folder / "store", model="fixed")
    index = await store.index("memory", "ana")
    assert {row.id for row in await index.list()} == set(kept)
    rows = rows_of(spread(100, seed=0), prefix="b00-")
    assert [(await index.query(row.vector, 1))[0].record.id for row in rows] == [row.id for row in rows]
    await store.close()
