import pytest

from memstory.contract.errors import Mark, NotSupported, SetupError
from memstory.datasets import load_task
from memstory.datasets.loading import BEIR, place_of
from memstory.language.story import Retrieval

MARK = Mark("stories/q.yaml", 4, 12)
LOCOMO = place_of("locomo")


@pytest.fixture(autouse=True)
def nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path / "cache"))
    # What somebody has fetched into the cache of the home folder plays no part.
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)


def test_a_path_in_the_story_that_is_not_there_is_unsupported_and_says_what_to_do(tmp_path):
    with pytest.raises(NotSupported, match=r"not at nowhere\.json.*put the file there") as absent:
        load_task(Retrieval(mark=MARK, dataset="locomo", path="nowhere.json"), tmp_path)
    assert absent.value.capability == "dataset.locomo"


def test_the_variable_names_the_file_and_a_wrong_one_is_no_silent_skip(tmp_path):
    (tmp_path / "l.json").write_text("[]")
    assert LOCOMO.find(None, tmp_path, {"MEMSTORY_LOCOMO": str(tmp_path / "l.json")}) == tmp_path / "l.json"
    with pytest.raises(SetupError, match="MEMSTORY_LOCOMO names"):
        LOCOMO.find(None, tmp_path, {"MEMSTORY_LOCOMO": str(tmp_path / "gone.json")})


def test_without_data_anywhere_the_reason_names_the_variable(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memstory.bundled.__file__", str(tmp_path / "a" / "b" / "c" / "bundled.py"))
    with pytest.raises(NotSupported, match=r"set MEMSTORY_LOCOMO to the file$"):
        LOCOMO.find(None, tmp_path, {})


def test_the_file_beside_the_working_folder_is_found(tmp_path, monkeypatch):
    place = tmp_path / "shared" / "data" / "locomo-dev.json"
    place.parent.mkdir(parents=True)
    place.write_text("[]")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr("memstory.bundled.__file__", str(tmp_path / "a" / "b" / "c" / "bundled.py"))
    assert LOCOMO.find(None, tmp_path, {}) == place


def test_a_data_set_that_is_a_folder_is_found_as_one_and_a_file_in_its_place_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert BEIR.find(None, tmp_path, {"MEMSTORY_BEIR": str(tmp_path)}) == tmp_path
    with pytest.raises(SetupError, match="which is not a folder"):
        BEIR.find(None, tmp_path, {"MEMSTORY_BEIR": str(tmp_path / "file")})
    with pytest.raises(NotSupported, match=r"set MEMSTORY_BEIR to the folder$"):
        BEIR.find(None, tmp_path, {})
