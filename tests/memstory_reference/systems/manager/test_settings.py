from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from memstory_reference.errors import InputError
from memstory_reference.systems.manager.settings import ManagerSettings


def test_the_shipped_settings_are_those_of_the_document():
    defaults = ManagerSettings.default()
    assert (defaults.path, defaults.context_window_size) == ("~/.reachy/memory", 5)
    assert (defaults.embedding_model, defaults.cleanup_interval) == ("all-MiniLM-L6-v2", 3600)
    assert (defaults.min_score, defaults.timezone) == (None, "UTC")


def test_the_home_folder_is_expanded(monkeypatch):  # M-06
    monkeypatch.setenv("HOME", "/home/ann")
    assert ManagerSettings.default().folder == Path("/home/ann/.reachy/memory")


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path):
    file = tmp_path / "memory.yaml"
    file.write_text("memory:\n  context_window_size: 0\n  timezone: Europe/Vienna\n")
    settings = ManagerSettings.read(file)
    assert (settings.context_window_size, settings.zone) == (0, ZoneInfo("Europe/Vienna"))
    assert settings.merge({"context_window_size": 5, "timezone": "UTC"}, "test") == ManagerSettings.default()


def test_the_variable_of_ollama_says_where_it_answers(monkeypatch):
    monkeypatch.setenv("OLLAMA_HOST", "box:8080")
    assert ManagerSettings.default().ollama_host == "http://box:8080"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory: {cleanup: 5}", "unknown setting 'cleanup'. Did you mean 'cleanup_interval'?"),
        ("memory: {cleanup_interval: 0}", "cleanup_interval is 0; allowed: a number of seconds from 1 to "),
        ("memory: {context_window_size: -1}", "context_window_size is -1; allowed: a whole number from 0 to 1000"),
        ("memory: {context_window_size: true}", "context_window_size is True"),
        ("memory: {timezone: Mars/Olympus}", "timezone is 'Mars/Olympus'; allowed: the name of a time zone"),
        ("memory: {timezone: ../../etc/passwd}", "timezone is '../../etc/passwd'"),
        ("memory: {timezone: 5}", "timezone is 5"),
        ("memory: {min_score: .nan}", "min_score is nan"),
        ("memory: {path: ''}", "path is ''"),
        ("memory: [path]", "settings stand under 'memory:', found a list"),
        ("path: here", "settings stand under 'memory:', found 'path'"),
        ("- path", "settings are 'key: value' lines"),
        ("memory: [", "is not YAML"),
    ],
)
def test_a_wrong_setting_is_refused_by_name_with_what_is_allowed(tmp_path, text, said):
    file = tmp_path / "memory.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as refusal:
        ManagerSettings.read(file)
    assert str(refusal.value).startswith(f"{file}: ")
    assert said in str(refusal.value)


@pytest.mark.parametrize("text", ["", "memory:\n", "# nothing\n"])
def test_a_file_that_says_nothing_leaves_the_defaults(tmp_path, text):
    file = tmp_path / "memory.yaml"
    file.write_text(text)
    assert ManagerSettings.read(file) == ManagerSettings.default()
