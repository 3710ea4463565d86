import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.vectors.memory_index import ExactRows
from memstory_reference.adapters.vectors.similarity import cosine, unit
from memstory_reference.ports import Record

VECTORS = st.tuples(*[st.integers(-2, 2)] * 3).filter(any)
IDS = st.sampled_from("abcdefgh")
STEPS = st.lists(st.one_of(st.tuples(IDS, VECTORS, st.booleans()), IDS), max_size=40)


def filled(steps):
    """Return the rows after puts and drops, beside a plain dict of what should be there."""
    rows, plain = ExactRows(), {}
    for step in steps:
        if isinstance(step, str):
            assert rows.drop([step]) == ([step] if step in plain else [])
            plain.pop(step, None)
        else:
            row_id, vector, flag = step
            rows.put([Record(id=row_id, text=row_id, metadata={"flag": flag}, vector=unit(vector))])
            plain[row_id] = (unit(vector), flag)
    return rows, plain


@given(steps=STEPS, asked=VECTORS, k=st.integers(0, 9), flag=st.sampled_from([None, True, False]))
def test_nearest_is_what_a_full_sort_gives(steps, asked, k, flag):
    rows, plain = filled(steps)
    where = {} if flag is None else {"flag": flag}
    question = unit(asked).astype(float)
    wanted = {one: vector.astype(float) for one, (vector, kept) in plain.items() if flag is None or kept is flag}
    ranked = sorted((-cosine(vector @ question), one) for one, vector in wanted.items())
    found = rows.nearest(unit(asked), k, where)
    assert [(-match.similarity, match.record.id) for match in found] == ranked[:k]


@given(steps=STEPS)
def test_rows_and_vectors_stay_together_after_holes_are_filled(steps):
    rows, plain = filled(steps)
    assert len(rows) == len(plain)
    assert rows.select({}) == sorted(plain)
    for one, (vector, flag) in plain.items():
        assert np.array_equal(rows.vector(one), vector)
        assert [row.metadata for row in rows.get([one])] == [{"flag": flag}]
    assert rows.vector("unknown") is None
