"""`memstory data` and a run by the name of a set, as a newcomer types them."""

import json

import pytest

from memstory.commands.running.run import pytest_arguments
from memstory.data_sets import SETS, set_story
from memstory.language.stories import load_stories


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path / "cache"))


def test_the_licence_and_the_size_are_told_before_anything_is_fetched(terminal):
    said = terminal.type("data", "get", "locomo")
    assert said.code == 2
    assert "licence: CC BY-NC 4.0. About 3 MB from https://raw.githubusercontent.com/snap-research/locomo/" in said.err
    assert said.err.endswith("nobody can be asked here whether the licence suits: add --yes if it does\n")


def test_who_says_no_gets_nothing(terminal, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: "n\n", raising=False)
    said = terminal.type("data", "get", "locomo")
    assert said.code == 1
    assert said.err.endswith("Nothing was fetched.\n")


def test_offline_is_one_line_that_says_what_to_do(terminal):
    said = terminal.type("data", "get", "longmemeval", "--yes", "--from", "http://127.0.0.1:1/")
    assert said.code == 2
    assert said.err.splitlines()[2].startswith(
        "memstory data: http://127.0.0.1:1/longmemeval_s_cleaned.json cannot be reached"
    )
    assert len(said.err.splitlines()) == 3


def test_a_copy_is_added_listed_and_checked(terminal, tmp_path):
    (tmp_path / "mine.json").write_text("[]")
    assert terminal.type("data", "add", "locomo", str(tmp_path / "mine.json")).code == 0
    listed = {one["name"]: one["here"] for one in json.loads(terminal.type("data", "list", "--json").out)}
    assert listed["locomo"].startswith("unpinned, SHA-256 4f53cda18c2b")
    assert listed["beam-10m"] is None
    (tmp_path / "cache" / "data" / "locomo" / "locomo10.json").write_text("[ ]")
    checked = terminal.type("data", "list", "--check")
    assert checked.code == 1
    assert "has changed since it came" in checked.err


def test_an_unknown_set_names_the_known_ones(terminal):
    said = terminal.type("data", "get", "locomoo", "--yes")
    assert (said.code, said.err.partition(" Known")[0]) == (
        2, "memstory data: no data set is named 'locomoo'. Did you mean 'locomo'?",
    )  # fmt: skip


def test_every_set_has_stories_that_can_be_read_and_only_measure():
    for name in SETS:
        stories = list(load_stories(set_story(name), name))
        assert [story.row for story in stories][:1] == ["turn"], name
        assert all(story.measure and story.id == name.upper() for story in stories), name
        assert all((story.retrieval.k, story.retrieval.cuts) == (10, (1, 5, 30)) for story in stories), name


def test_the_name_of_a_set_stands_for_its_stories_before_and_behind_options(terminal):
    file = str(set_story("locomo"))
    assert file in pytest_arguments(["locomo", "--target", "fts5"])
    assert file in pytest_arguments(["--target", "fts5", "locomo", "--sample", "2"])
    terminal.save()
    words = pytest_arguments(["a.story.yaml", "-k", "locomo"])
    assert file not in words
    assert words[-2:] == ["-k", "locomo"]


def test_a_folder_of_that_name_comes_first(terminal):
    terminal.save(name="locomo/b.story.yaml")
    assert str(set_story("locomo")) not in pytest_arguments(["locomo"])


def test_a_name_that_is_nearly_one_is_told(terminal):
    assert "Did you mean 'longmemeval', a set of data?" in terminal.type("run", "longmemval").err
