import errno
import os

import numpy as np
import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.storage.mapped_matrix import MappedMatrix

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
