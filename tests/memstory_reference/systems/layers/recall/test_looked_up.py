"""What of a turn is looked up in the memory."""

import pytest

from memstory_reference.adapters.machine import SystemClock
from memstory_reference.systems.layers.recall.retrieval import Retrieval
from memstory_reference.systems.layers.settings import LayersSettings


class AskedError(Exception):
    """Has what was to be embedded."""


class Embeddings:
    async def of_query(self, text):
        raise AskedError(text)


@pytest.mark.parametrize(
    ("said", "looked_up"),
    [
        ("Good morning! Where do I live?", "Where do I live?"),
        ("Where do I live? Thanks.", "Where do I live?"),
        ("Hello there.", "Hello there."),
    ],
)
async def test_a_courtesy_beside_a_question_is_no_part_of_what_is_looked_up(said, looked_up):
    retrieval = Retrieval(store=None, embeddings=Embeddings(), config=LayersSettings())
    with pytest.raises(AskedError) as caught:
        await retrieval.load_memory_for_turn("ann", said, now=SystemClock().now(), is_first_turn=False)
    assert str(caught.value) == looked_up
