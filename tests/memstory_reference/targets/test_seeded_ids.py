import pytest

from memstory_reference.errors import SetupProblem
from memstory_reference.targets.seeded_ids import seeded_ids


def some(new_id, count=50):
    return [new_id() for _ in range(count)]


def test_the_same_seed_in_a_fresh_workspace_gives_the_same_ids(tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    one, other = [some(seeded_ids(folder, 7)) for folder in folders]
    assert one == other
    assert some(seeded_ids(folders[0], 8)) != one


def test_ids_never_come_twice_in_one_workspace_whatever_the_restarts(tmp_path):
    given = [one for _ in range(20) for one in some(seeded_ids(tmp_path, 0))]
    assert len(set(given)) == len(given) == 1000


def test_a_crash_while_the_opening_is_written_costs_no_id(tmp_path):
    first = some(seeded_ids(tmp_path, 0))
    (tmp_path / "opened.new").write_text("")
    assert not set(first) & set(some(seeded_ids(tmp_path, 0)))


def test_a_workspace_that_nobody_can_write_to_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        SetupProblem, match=r"file/opened: the workspace cannot be written \(.+\); choose another folder"
    ):
        seeded_ids(tmp_path / "file", 0)


def test_a_count_that_cannot_be_read_is_an_error_and_no_second_start_from_one(tmp_path):
    (tmp_path / "opened").write_text("garbage")
    with pytest.raises(ValueError, match="garbage"):
        seeded_ids(tmp_path, 0)
