import numpy as np
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.ports import Purpose
from memstory_reference.storage.checked_embedder import CheckedEmbedder


class Answers:
    model = "it"

    def __init__(self, answer, dimension=2):
        self.answer, self.dimension = answer, dimension

    async def embed(self, texts, purpose):
        return self.answer


async def embedded(answer, dimension=2):
    return await CheckedEmbedder(Answers(answer, dimension)).embed(["a", "b"], Purpose.DOCUMENT)


EAST = [1, 0]


@pytest.mark.parametrize(
    "answer",
    [
        [EAST, [np.nan, 0]],
        [EAST, [np.inf, 0]],
        [EAST, [1e308, 1e308]],
        [EAST, [0, 0]],
        [EAST],
        [[1, 0, 0], [1, 0, 0]],
        [EAST, [1]],
        EAST,
        None,
        [[10**400, 0], EAST],
    ],
)
async def test_what_no_index_takes_is_refused_and_the_model_is_named(answer):
    with pytest.raises(UnavailableError, match="the embedder 'it' gave vectors that cannot be used"):
        await embedded(answer)


async def test_an_embedder_that_does_not_know_its_dimension_may_give_any():
    assert (await embedded([[1, 0, 0], [0, 1, 0]], None)).tolist() == [[1, 0, 0], [0, 1, 0]]


async def test_long_vectors_are_brought_to_one_and_unit_vectors_stay_as_they_are():
    almost = np.float32(1.0001)
    assert (await embedded([[1e30, 0], [0, almost]])).tolist() == [[1, 0], [0, almost]]
