"""A pool of turns that were never stored: `pool_for` ranks what it is given."""

from types import SimpleNamespace

import numpy as np
import pytest

from memstory_reference.systems.turns.stores.columns import Columns
from memstory_reference.systems.turns.stores.owner_pool import Index, pool_of
from memstory_reference.systems.turns.stores.postings import Postings, stem_codes
from memstory_reference.systems.turns.stores.tables_store import features_of


@pytest.fixture(scope="session")
def pool_for():
    """Returns the pool of a question among turns, by number, whose unit vectors are given."""

    def make(turns, question, vectors, vector, size=50):
        columns, postings = Columns(), Postings()
        matrix = np.zeros((max(turns, default=0) + 1, len(vector)), np.float32)
        for number, turn in sorted(turns.items()):
            words = turn.stems
            columns.put([features_of(turn, number, len(words))])
            postings.add(np.full(len(words), number), stem_codes(words))
            matrix[number] = vectors[number]
        index = Index(columns=columns, postings=postings, matrix=SimpleNamespace(rows=matrix))
        return pool_of(index, np.asarray(vector, np.float32), question.stems, size, None)

    return make
