import numpy as np
import pytest

from memstory_reference.adapters.vectors.exact_store import open_exact_folder
from memstory_reference.adapters.vectors.reindexing import reindex
from memstory_reference.errors import InputError, StoreConflictError
from memstory_reference.ports import EmbedderUnavailableError


class Other:
    """Another model: text n points along axis n of 40."""

    model, dimension, fails_at = "other", 40, None

    async def embed(self, texts, _purpose):
        if self.fails_at is not None and f"text {self.fails_at}" in texts:
            raise EmbedderUnavailableError("the embedder is down; start it")
        return np.eye(40, dtype=np.float32)[[int(text.removeprefix("text ")) for text in texts]]


async def open_as_other(folder):
    store = open_exact_folder(folder, model="other")
    return store, await store.index("memory", "ana")


async def test_after_reindexing_the_store_is_the_other_models_and_finds_everything(tmp_path, filled, spread):
    store, index = await filled(tmp_path, 30)
    await index.query(spread(1)[0], 1)
    await store.close()
    with pytest.raises(StoreConflictError, match="memory reindex"):
        await open_as_other(tmp_path)
    assert await reindex(tmp_path, Other()) == 30
    store, index = await open_as_other(tmp_path)
    found = [(await index.query(np.eye(40, dtype=np.float32)[n], 1))[0].record.text for n in range(30)]
    assert found == [f"text {n}" for n in range(30)]
    await store.close()


async def test_reindexing_that_fails_leaves_the_store_as_it_was(tmp_path, filled, spread):
    store, _ = await filled(tmp_path, 30)
    await store.close()
    broken = Other()
    broken.fails_at = 17
    with pytest.raises(EmbedderUnavailableError):
        await reindex(tmp_path, broken)
    store = open_exact_folder(tmp_path, model="fixed")
    index = await store.index("memory", "ana")
    assert (await index.query(spread(30)[17], 1))[0].record.text == "text 17"
    await store.close()
    assert await reindex(tmp_path, Other()) == 30


async def test_what_is_no_store_or_is_in_use_is_refused(tmp_path, filled):
    with pytest.raises(InputError, match="no store is there"):
        await reindex(tmp_path, Other())
    store, _ = await filled(tmp_path, 3)
    with pytest.raises(StoreConflictError, match="in use"):
        await reindex(tmp_path, Other())
    await store.close()
