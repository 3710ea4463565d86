"""What an embedder or a row may hold at its worst harms nobody but the call that brought it."""

import numpy as np
import pytest

GOOD = [1, *[0] * 15]


async def texts(service, query, user):
    return [one.memory.content for one in (await service.recall(query, user)).memories]


@pytest.mark.parametrize("vector", [b"", b"abc", np.zeros(16, "f4").tobytes(), np.full(16, np.nan, "f4").tobytes(),
                                    np.ones(8, "f4").tobytes()])  # fmt: skip
async def test_a_vector_that_went_bad_in_the_file_is_set_aside_and_counted(make_service, vector):
    service = make_service({"ask": GOOD, "far": GOOD}, store_threshold=0)
    await service.import_rows([{"text": "near", "id": "1", "vector": GOOD}], "ann")
    await service.import_rows([{"text": "broken", "id": "2", "vector": GOOD}], "ann")
    service._database.execute("UPDATE memories SET vector = ? WHERE id = '2'", (vector,))
    service._database.execute("UPDATE centroids SET total = ?", (np.full(16, np.nan).tobytes(),))
    await service.close()
    again = make_service({"ask": GOOD})
    assert await texts(again, "ask", "ann") == ["near"]
    assert [one.memory.content for one in (await again.recall("ask", "ann", include_compressed=True)).memories] == [
        "near"
    ]
    status = await again.status("ann")
    assert (status["vectors"], status["set_aside"]) == (1, 1)
    assert len(await again.ingest("We met Uwe in Bonn", "ann", "s")) == 1
    assert await again.reindex("ann") == 3
    assert (await again.status("ann"))["set_aside"] == 0
    assert await again.centroid_drift("ann") <= 1e-6
    assert "broken" in [one.content for one in await again.memories("ann")]
    assert await again.delete(["2"], "ann") == ["2"]


async def test_an_imported_row_whose_summary_does_not_exist_stays_visible(make_service):
    service = make_service({"ask": GOOD})
    rows = [{"text": text, "compressed": True, "summary_id": of, "vector": GOOD, "session": text} for text, of in
            (("of nothing", "nope"), ("of no summary", "plain"))]  # fmt: skip
    stored = await service.import_rows([*rows, {"text": "plain", "id": "plain", "vector": GOOD}], "ann")
    assert [one.summary_id for one in stored] == [None, None, None]
    assert sorted(await texts(service, "ask", "ann")) == ["of no summary", "of nothing", "plain"]


async def test_a_summary_that_an_import_replaces_hides_nothing_any_more(make_service):
    service = make_service({"ask": GOOD})
    summary = {"text": "told", "id": "s", "kind": "semantic", "compression_source": True, "vector": GOOD}
    await service.import_rows([{"text": "it", "compressed": True, "summary_id": "s", "vector": GOOD}, summary], "ann")
    assert await texts(service, "ask", "ann") == ["told"]
    await service.import_rows([{"text": "else", "id": "s", "vector": GOOD}], "ann")
    assert sorted(await texts(service, "ask", "ann")) == ["else", "it"]
