import errno
import os

import pytest

from memstory.commands.story_files import story_files
from memstory.contract.errors import SetupError


def names(*named, **options):
    return [file.display for file in story_files(named, **options)]


def test_a_folder_gives_what_ends_in_story_yaml_and_nothing_else(terminal):
    for name in (
        "b.story.yaml",
        "sub/a.story.yml",
        "sub/other.yaml",
        ".hidden/c.story.yaml",
        "node_modules/d.story.yaml",
    ):
        terminal.save(name=name)
    assert names() == ["b.story.yaml", "sub/a.story.yml"]


def test_a_virtual_environment_is_not_searched(terminal):
    terminal.save("", "env/pyvenv.cfg")
    terminal.save(name="env/lib/a.story.yaml")
    with pytest.raises(SetupError, match=r"no story file in this folder\. A file of stories ends in \.story\.yaml"):
        names()


def test_a_folder_that_cannot_be_searched_is_an_error_and_not_an_empty_one(terminal, monkeypatch):
    terminal.save()
    terminal.save(name="locked/b.story.yaml")
    scan = os.scandir

    def refuse(place):
        if str(place).endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        return scan(place)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SetupError, match=r"locked cannot be searched for stories: Permission denied"):
        names()


def test_only_what_can_hold_stories_is_suggested(terminal):
    terminal.save("{}", "drink.json")
    with pytest.raises(SetupError) as told:
        names("drink.yaml")
    assert "drink.json" not in str(told.value)


def test_a_missing_path_is_told_as_it_was_typed():
    with pytest.raises(SetupError, match=r"no file or folder http://localhost:1/x\."):
        names("http://localhost:1/x")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pytest.ini", "[pytest]\nmemstory_stories = tales more/tales\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\nmemstory_stories = ['tales', 'more/tales']\n"),
        ("pyproject.toml", "[tool.pytest]\nmemstory_stories = ['tales', 'more/tales']\n"),
        ("setup.cfg", "[tool:pytest]\nmemstory_stories =\n    tales\n    more/tales\n"),
        ("tox.ini", "[pytest]\nmemstory_stories = tales 'more/tales'\n"),
    ],
)
def test_folders_of_the_ini_setting_hold_stories_whatever_their_names(terminal, monkeypatch, file, text):
    terminal.save(text, file)
    terminal.save(name="tales/one.yaml")
    terminal.save(name="more/tales/two.yml")
    terminal.save("x: 1", "other/three.yaml")
    assert names() == ["more/tales/two.yml", "tales/one.yaml"]
    monkeypatch.chdir(terminal.folder / "tales")
    assert names() == ["one.yaml"]


def test_a_file_of_others_without_a_section_for_pytest_does_not_end_the_search(terminal, monkeypatch):
    terminal.save("[pytest]\nmemstory_stories = sub\n", "pytest.ini")
    terminal.save("[tool.other]\nx = 1\n", "sub/pyproject.toml")
    terminal.save(name="sub/one.yaml")
    monkeypatch.chdir(terminal.folder / "sub")
    assert names() == ["one.yaml"]


def test_settings_that_cannot_be_read_are_one_line(terminal):
    terminal.save("[tool", "pyproject.toml")
    said = terminal.type("list")
    assert said.code == 2
    assert "pyproject.toml cannot be read" in said.err


def test_a_named_file_is_a_story_whatever_its_name_and_counts_once(terminal):
    terminal.save(name="plain.yaml")
    assert names("plain.yaml", "./plain.yaml") == ["plain.yaml"]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("b.story.yaml", "no file or folder b.story.yaml. Did you mean 'a.story.yaml'?"),
        ("notes.txt", "notes.txt is not a story file: its name ends in '.txt', not in .yaml or .yml"),
    ],
)
def test_a_wrong_path_is_told_with_what_is_near(terminal, named, message):
    terminal.save()
    terminal.save("", "notes.txt")
    said = terminal.type("list", named)
    assert (said.code, said.err) == (2, f"memstory list: {message}\n")


@pytest.mark.usefixtures("terminal")
def test_the_bundled_stories_are_found_from_anywhere():
    assert any(name.endswith("s5_memory_recall.yaml") for name in names(bundled=True))
