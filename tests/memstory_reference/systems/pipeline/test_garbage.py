"""What an embedder or a row may hold at its worst harms nobody but the call that brought it."""

import numpy as np
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.errors import StoreConflictError

GOOD = [1, *[0] * 15]


class Whimsical:
    """An embedder that can go wrong, and be well again."""

    model, dimension = "hashed-16", 16
    answer = None

    def __init__(self, inner):
        self._inner = inner

    async def embed(self, texts, purpose):
        if self.answer is None:
            return await self._inner.embed(texts, purpose)
        return np.full((len(texts), 16), self.answer, np.float32)


@pytest.fixture
def whimsical(hashed_vectors):
    return Whimsical(hashed_vectors())


async def texts(service, query, user):
    return [one.memory.content for one in (await service.recall(query, user)).memories]


@pytest.mark.parametrize("answer", [0.0, float("nan"), float("inf")])
async def test_garbage_of_an_embedder_is_refused_and_nobody_notices_it_later(make_service, whimsical, answer):
    service = make_service(embedder=whimsical)
    await service.ingest("We met Bob in Rome", "bob", "s")
    (kept,) = await service.ingest("We met Eve in Oslo", "eve", "s")
    whimsical.answer = answer
    for refused in (
        service.ingest("We met Ada in Paris", "eve", "s"),
        service.update(kept.id, "We met Ada in Paris", "eve"),
        service.import_rows([{"text": "We met Ada in Paris"}], "eve"),
        service.recall("Paris", "eve"),
    ):
        with pytest.raises(UnavailableError, match="'hashed-16' gave vectors that cannot be used"):
            await refused
    whimsical.answer = None
    assert len(await service.ingest("We met Uwe in Bonn", "eve", "s")) == 1
    assert await service.centroid_drift("eve") <= 1e-6
    await service.close()
    again = make_service(embedder=whimsical)
    assert await texts(again, "Rome", "bob") == ["We met Bob in Rome"]
    assert sorted(await texts(again, "Bonn", "eve")) == ["We met Eve in Oslo", "We met Uwe in Bonn"]


async def test_an_embedder_that_changed_its_dimension_between_two_starts_is_refused(make_service, hashed_vectors):
    service = make_service(embedder=hashed_vectors(dimension=16, model="it"))
    await service.ingest("We met Bob in Rome", "bob", "s")
    await service.close()
    other = make_service(embedder=hashed_vectors(dimension=8, model="it"))
    for refused in (other.ingest("We met Ada in Paris", "ann", "s"), other.recall("Rome", "bob")):
        with pytest.raises(StoreConflictError, match=r"vectors of 16 numbers, not 8: .*another folder"):
            await refused
    assert await other.memories("ann") == []


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
