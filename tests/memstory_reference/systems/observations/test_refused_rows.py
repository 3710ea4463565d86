"""A row that an index cannot take harms nobody: it is refused before it is written, or set aside and reported."""

import numpy as np

from memstory.contract.target import Scope

ANN = Scope(user="ann")


async def test_a_row_that_an_earlier_version_wrote_badly_is_set_aside_and_reported(open_words, run_of, caplog):
    memory = await open_words()
    await memory.store([run_of("good", "Covered caching.")], "ann")
    # What an earlier version did: the row was in SQLite before any index had seen its vector.
    memory.rows.insert("ann", [(run_of("bad", "Covered bees."), np.zeros(256, np.float32))])
    memory.rows.insert("", [(run_of("nobody", "Covered bees."), np.ones(256, np.float32))])
    await memory.close()
    memory = await open_words()
    await memory.store([run_of("next", "Covered cheese.")], "bob")
    assert await memory.run("reindex", {}, ANN) == {"reindexed": 1}
    assert [one.observation.id for one in await memory.find("caching", "ann")] == ["good"]
    status = await memory.inspect("status", {}, ANN)
    assert (status["observations"], status["vectors"], status["pending"]) == (2, 1, 0)
    assert "'bad'" in caplog.text
    assert "'nobody'" in caplog.text
    await memory.close()
