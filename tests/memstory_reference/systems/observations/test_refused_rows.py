"""A row that an index cannot take harms nobody: it is refused before it is written, or set aside and reported."""

import numpy as np
import pytest

from memstory.contract.errors import MemstoryError

BROKEN = {
    "not a number": [float("nan")] * 256,
    "zero": [0.0] * 256,
    "infinite": [float("inf")] * 256,
    "of another dimension": [1.0] * 8,
}


@pytest.mark.parametrize("vector", BROKEN.values(), ids=BROKEN)
async def test_a_vector_that_no_index_takes_is_refused_and_nothing_is_written(open_words, words, run_of, vector):
    service = await open_words()
    await service.store([run_of("good", "Covered caching.")], "ann")
    words.broken.append(vector)
    with pytest.raises(MemstoryError, match="vector"):
        await service.store([run_of("bad", "Covered nothing.")], "bob")
    await service.store([run_of("next", "Covered bees.")], "ann")
    assert await service.delete(["good"], "ann") == ["good"]
    assert (await service.recent("bob"), (await service.status("ann"))["pending"]) == ([], 0)
    await service.close()
    await (await open_words()).close()


async def test_a_row_that_an_earlier_version_wrote_badly_is_set_aside_and_reported(open_words, run_of, caplog):
    service = await open_words()
    await service.store([run_of("good", "Covered caching.")], "ann")
    # What an earlier version did: the row was in SQLite before any index had seen its vector.
    service._store.insert("ann", [(run_of("bad", "Covered bees."), np.zeros(256, np.float32))])
    service._store.insert("", [(run_of("nobody", "Covered bees."), np.ones(256, np.float32))])
    await service.close()
    service = await open_words()
    await service.store([run_of("next", "Covered cheese.")], "bob")
    assert await service.reindex() == 2
    assert [one.observation.id for one in await service.search("caching", "ann")] == ["good"]
    status = await service.status("ann")
    assert (status["observations"], status["vectors"], status["pending"]) == (2, 1, 0)
    assert "'bad'" in caplog.text
    assert "'nobody'" in caplog.text
    await service.close()
