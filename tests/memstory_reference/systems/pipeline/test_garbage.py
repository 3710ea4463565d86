"""What an embedder or a row may hold at its worst harms nobody but the call that brought it."""

import numpy as np
import pytest

from memstory.contract.target import Ref, Scope

ANN = Scope(user="ann")

GOOD = [1, *[0] * 15]


async def texts(pipeline, query, user):
    return [one.memory.content for one in (await pipeline.recall(query, user)).memories]


@pytest.mark.parametrize("vector", [b"", b"abc", np.zeros(16, "f4").tobytes(), np.full(16, np.nan, "f4").tobytes(),
                                    np.ones(8, "f4").tobytes()])  # fmt: skip
async def test_a_vector_that_went_bad_in_the_file_is_set_aside_and_counted(make_pipeline, vector):
    pipeline = make_pipeline({"ask": GOOD, "far": GOOD}, store_threshold=0)
    await pipeline.import_memories([{"text": "near", "id": "1", "vector": GOOD}], "ann")
    await pipeline.import_memories([{"text": "broken", "id": "2", "vector": GOOD}], "ann")
    pipeline._database.execute("UPDATE memories SET vector = ? WHERE id = '2'", (vector,))
    pipeline._database.execute("UPDATE centroids SET total = ?", (np.full(16, np.nan).tobytes(),))
    await pipeline.close()
    again = make_pipeline({"ask": GOOD})
    assert await texts(again, "ask", "ann") == ["near"]
    assert [one.memory.content for one in (await again.recall("ask", "ann", include_compressed=True)).memories] == [
        "near"
    ]
    status = await again.inspect("status", {}, ANN)
    assert (status["vectors"], status["set_aside"]) == (1, 1)
    assert len(await again.ingest("We met Uwe in Bonn", "ann", "s")) == 1
    assert await again.run("reindex", {}, ANN) == {"reindexed": 3}
    assert (await again.inspect("status", {}, ANN))["set_aside"] == 0
    assert await again.inspect("drift", {}, ANN) <= 1e-6
    assert "broken" in [one.content for one in await again.memories("ann")]
    assert await again.delete(Ref(id="2"), ANN)


async def test_an_imported_row_whose_summary_does_not_exist_stays_visible(make_pipeline):
    pipeline = make_pipeline({"ask": GOOD})
    rows = [{"text": text, "compressed": True, "summary_id": of, "vector": GOOD, "session": text} for text, of in
            (("of nothing", "nope"), ("of no summary", "plain"))]  # fmt: skip
    stored = await pipeline.import_memories([*rows, {"text": "plain", "id": "plain", "vector": GOOD}], "ann")
    assert [one.summary_id for one in stored] == [None, None, None]
    assert sorted(await texts(pipeline, "ask", "ann")) == ["of no summary", "of nothing", "plain"]


async def test_a_summary_that_an_import_replaces_hides_nothing_any_more(make_pipeline):
    pipeline = make_pipeline({"ask": GOOD})
    summary = {"text": "told", "id": "s", "kind": "semantic", "compression_source": True, "vector": GOOD}
    await pipeline.import_memories(
        [{"text": "it", "compressed": True, "summary_id": "s", "vector": GOOD}, summary], "ann"
    )
    assert await texts(pipeline, "ask", "ann") == ["told"]
    await pipeline.import_memories([{"text": "else", "id": "s", "vector": GOOD}], "ann")
    assert sorted(await texts(pipeline, "ask", "ann")) == ["else", "it"]
