import errno
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.vector_matrix import (
    DIGITS,
    MappedMatrix,
    VectorMatrix,
    cosines,
    normalized_or_none,
)

VECTORS = st.tuples(*[st.integers(-2, 2)] * 3).filter(any)
IDS = st.sampled_from("abcdefgh")
MOMENTS = st.integers(0, 3)
STEPS = st.lists(st.one_of(st.tuples(IDS, VECTORS, MOMENTS), IDS), max_size=40)


def unit(vector):
    return normalized_or_none(np.array(vector, np.float32))


def filled(steps):
    """Return the matrix after puts and discards, beside a plain dict of what should be there."""
    matrix, plain = VectorMatrix(), {}
    for step in steps:
        if isinstance(step, str):
            matrix.discard(step)
            plain.pop(step, None)
        else:
            identifier, vector, moment = step
            matrix.put(identifier, unit(vector), moment)
            plain[identifier] = (unit(vector), moment)
    return matrix, plain


@given(
    steps=STEPS,
    asked=VECTORS,
    k=st.integers(0, 9),
    among=st.none() | st.sets(IDS),
    since=st.none() | MOMENTS,
)
def test_nearest_is_what_a_full_sort_gives(steps, asked, k, among, since):
    matrix, plain = filled(steps)
    among = None if among is None else sorted(among & plain.keys(), reverse=True)
    question = unit(asked).astype(float)
    ranked = sorted(
        (-round(float(np.clip(vector.astype(float) @ question, -1, 1)), DIGITS), -moment, identifier)
        for identifier, (vector, moment) in plain.items()
        if (among is None or identifier in among) and (since is None or moment >= since)
    )
    places = None if among is None else matrix.places(among)
    found = matrix.nearest(unit(asked), k, among=places, since=since)
    assert found == [(identifier, -score) for score, _, identifier in ranked[:k]]
    assert len(matrix) == len(plain)


def test_vector_without_a_direction_is_not_usable():
    assert normalized_or_none(None) is None
    assert normalized_or_none(np.zeros(3)) is None
    assert normalized_or_none(np.array([np.nan, 1.0])) is None
    assert normalized_or_none(np.array([np.inf, 1.0])) is None
    assert normalized_or_none(np.array([3.0, 4.0])).tolist() == [np.float32(0.6), np.float32(0.8)]


def test_equal_rows_get_equal_scores_wherever_they_are():
    row = unit(np.random.default_rng(1).standard_normal(384))
    scores = cosines(np.array([row] * 37), unit(np.random.default_rng(2).standard_normal(384)))
    assert len(set(scores)) == 1


UNITS = np.eye(4, dtype=np.float32)


@pytest.fixture
def matrix(tmp_path):
    return MappedMatrix(tmp_path / "owner.f32", 4)


def test_rows_outlive_the_closing_of_the_file(matrix, tmp_path):
    matrix.reserve(3)
    matrix.put([1, 2], UNITS[:2])
    matrix.close()
    again = MappedMatrix(tmp_path / "owner.f32", 4)
    assert again.rows[1].tolist() == [1, 0, 0, 0]
    assert again.unwritten(np.array([1, 2])).tolist() == []


def test_rows_that_were_wiped_or_never_written_are_told(matrix):
    matrix.reserve(4)
    matrix.put([0, 1, 2], UNITS[:3])
    matrix.wipe([1, 900])
    assert sorted(matrix.unwritten(np.array([0, 1, 2, 3, 70])).tolist()) == [1, 3, 70]


def test_growing_keeps_what_is_there(matrix):
    matrix.reserve(1)
    matrix.put([0], UNITS[:1])
    matrix.reserve(1000)
    assert len(matrix.rows) >= 1000
    assert matrix.rows[0].tolist() == [1, 0, 0, 0]


def test_growing_keeps_what_is_there_also_where_no_room_can_be_reserved(matrix, monkeypatch, tmp_path):
    monkeypatch.delattr(os, "posix_fallocate")  # as on macOS
    matrix.reserve(1)
    matrix.put([0], UNITS[:1])
    matrix.reserve(1000)
    assert matrix.rows[0].tolist() == [1, 0, 0, 0]
    assert (tmp_path / "owner.f32").stat().st_size == matrix.rows.nbytes


def test_a_full_disk_is_told_before_anything_is_changed(matrix, monkeypatch):
    matrix.reserve(1)
    before = len(matrix.rows)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UnavailableError, match="no room"):
        matrix.reserve(10_000)
    assert len(matrix.rows) == before


def test_without_a_file_rows_are_in_memory_alone_and_kept_when_they_grow(tmp_path):
    matrix = MappedMatrix(None, 4)
    matrix.reserve(2)
    matrix.put([0, 1], UNITS[:2])
    matrix.reserve(1000)
    matrix.wipe([1])
    assert matrix.rows[0].tolist() == [1, 0, 0, 0]
    assert matrix.unwritten(np.array([0, 1, 999])).tolist() == [1, 999]
    assert not list(tmp_path.iterdir())


def test_a_torn_row_is_told_as_unwritten(matrix):
    matrix.reserve(1)
    matrix.put([0], np.full((1, 4), 0.5, np.float32))
    matrix.rows[0, 2:] = 0
    assert matrix.unwritten(np.array([0])).tolist() == [0]


def test_a_file_that_was_closed_is_mapped_again_and_refused_if_rows_were_cut_off(matrix, tmp_path):
    matrix.reserve(2)
    matrix.put([1], UNITS[:1])
    matrix.close()
    assert matrix.rows[1].tolist() == [1, 0, 0, 0]
    matrix.close()
    os.truncate(tmp_path / "owner.f32", 16)
    with pytest.raises(UnavailableError, match="cut off"):
        matrix.rows  # noqa: B018  (to read it maps the file)
