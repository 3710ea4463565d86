"""A row that an index cannot take harms nobody: it is refused before it is written, or set aside and reported."""

import numpy as np


async def test_a_row_that_an_earlier_version_wrote_badly_is_set_aside_and_reported(open_words, run_of, caplog):
    service = await open_words()
    await service.store([run_of("good", "Covered caching.")], "ann")
    # What an earlier version did: the row was in SQLite before any index had seen its vector.
    service.rows.insert("ann", [(run_of("bad", "Covered bees."), np.zeros(256, np.float32))])
    service.rows.insert("", [(run_of("nobody", "Covered bees."), np.ones(256, np.float32))])
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
