"""A disk that is really full: a tmpfs of a few megabytes, which only root may mount."""

from datetime import UTC, datetime

import numpy as np
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.composition.turns import turns_in_folder
from memstory_reference.systems.turns.stores.owner_store import IndexedTurn
from memstory_reference.systems.turns.turn import Conditions, NewTurn, checked_turn

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SIZE = 384


def vector_of(batch, number):
    drawn = np.random.default_rng([batch, number]).standard_normal(SIZE).astype(np.float32)
    return drawn / np.linalg.norm(drawn)


def batch_of(batch):
    turns = [checked_turn(NewTurn(text=f"Tea {number}."), f"b{batch:02}-{number}", NOON) for number in range(50)]
    return [
        IndexedTurn(turn=turn, vector=vector_of(batch, number), stems=["tea", str(number)])
        for number, turn in enumerate(turns)
    ]


@pytest.mark.slow
async def test_on_a_full_disk_what_was_acknowledged_is_kept_and_found_and_the_rest_leaves_no_trace(small_disk):
    folder, enlarge = small_disk
    store = turns_in_folder(folder / "store", "fixed")
    kept, refused = {}, []
    for batch in range(60):
        rows = batch_of(batch)
        try:
            await store.put("ann", rows)
            kept |= {row.turn.id: row for row in rows}
        except UnavailableError:
            refused.append(rows)
    assert kept
    assert refused

    async def ids():
        return [turn.id for turn in await store.list_turns("ann", Conditions())]

    async def nearest(vector):
        pool = await store.pool("ann", vector, [], 1, Conditions())
        (turn,) = (await store.by_numbers("ann", [int(pool.numbers[int(np.argmax(pool.cosines))])])).values()
        return turn.id

    async def all_are_found():
        return [await nearest(row.vector) for row in kept.values()] == list(kept)

    assert await ids() == list(kept)
    assert await all_are_found()
    await store.close()
    enlarge()
    store = turns_in_folder(folder / "store", "fixed")
    assert await ids() == list(kept)
    assert await all_are_found()
    for rows in refused:
        await store.put("ann", rows)
        kept |= {row.turn.id: row for row in rows}
    assert await ids() == list(kept)
    assert await all_are_found()
    await store.close()
