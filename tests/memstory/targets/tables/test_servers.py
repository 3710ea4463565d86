"""How the server of a table is started, and which tables may share one."""

import sys
from pathlib import Path

import pytest

from memstory.contract.errors import SetupError
from memstory.targets.tables.reading import parse_table
from memstory.targets.tables.servers import launch_of

SEARCH = {"path": "/search", "body": {"q": "{query}"}, "reply": {"text": "text"}}
APART = {"path": "/search", "body": {"q": "{query}", "user": "{user}"}, "reply": {"text": "text"}}
VALUES = {"workspace": "/cases/one", "port": 8123}


def http(folder=".", **keys):
    return parse_table("notes", {"type": "http", **keys}, "memstory.toml", str(folder))


def test_files_beside_the_table_are_found_and_all_else_is_left_to_the_workspace(tmp_path):
    for name in ("server.py", "notes.db"):
        (tmp_path / name).touch()
    launch = launch_of(http(tmp_path, command=["{python}", "server.py", "notes.db", "--port={port}"]), VALUES)
    assert launch.command == [sys.executable, str(tmp_path / "server.py"), "notes.db", "--port=8123"]
    assert launch.cwd == Path("/cases/one")


@pytest.mark.parametrize("word", ["bin/serve", "./bin/serve", "../project/bin/serve"])
def test_a_program_is_found_by_its_path_from_the_table_on(tmp_path, word):
    (tmp_path / "project/bin").mkdir(parents=True)
    (tmp_path / "project/bin/serve").touch()
    launch = launch_of(http(tmp_path / "project", command=[word, "bin/serve", "{port}"]), VALUES)
    assert Path(launch.command[0]).samefile(tmp_path / "project/bin/serve")
    assert launch.command[1] == "bin/serve"


@pytest.mark.parametrize("words", [["uvicorn", "app:api"], ["python", "-m", "app"], ["python", "-m", "app.main"]])
def test_a_module_beside_the_table_can_be_imported(tmp_path, words):
    (tmp_path / "app.py").touch()
    launch = launch_of(http(tmp_path, command=[*words, "--port", "{port}"]), VALUES)
    assert launch.env == {"PYTHONPATH": str(tmp_path)}


def test_a_module_that_is_not_there_changes_nothing(tmp_path):
    launch = launch_of(http(tmp_path, command=["uvicorn", "app:api", "--port", "{port}"]), VALUES)
    assert launch.env == {}


def test_a_folder_is_one_from_the_table_on(tmp_path):
    launch = launch_of(http(tmp_path, command=["serve"], env={"PORT": "{port}"}, cwd="."), VALUES)
    assert (launch.cwd, launch.env) == (tmp_path, {"PORT": "8123"})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, r"\[targets\.notes\] lacks 'command' or 'url'"),
        ({"command": ["serve"]}, r"'command' lacks \{port\}"),
        ({"command": ["serve", "{port}"], "url": "http://127.0.0.1:80"}, r"'url' lacks \{port\}"),
        ({"command": ["serve", "{port}", "{user}"]}, r"'command' names \{user\}"),
        ({"command": ["serve", "{prt}"]}, r"unknown placeholder \{prt\}\. Did you mean 'port'\?"),
        ({"url": "http://127.0.0.1:80", "search": SEARCH}, r"notes\.search\] names no \{user\}.*what others remember"),
        (
            {"url": "http://127.0.0.1:80", "delete_all": {"method": "DELETE", "path": "/all"}},
            r"notes\.delete_all\] names no \{user\}.*forget what others remember",
        ),
        (
            {"url": "http://127.0.0.1:80", "list": {"path": "/all", "reply": {"text": "text"}}},
            r"notes\.list\] names no \{user\}.*what others remember",
        ),
    ],
)
def test_a_table_whose_server_would_do_harm_or_cannot_be_reached_is_refused(keys, said):
    with pytest.raises(SetupError, match=said):
        http(**keys)


@pytest.mark.parametrize(
    "keys",
    [
        {"url": "http://127.0.0.1:80", "search": APART},
        {"url": "http://127.0.0.1:80", "search": {**SEARCH, "keep": {"owner": "{user}"}}},
        {"url": "http://127.0.0.1:80", "delete": {"method": "DELETE", "path": "/notes/{id}"}},
        {"command": ["serve", "{port}"], "search": SEARCH},
    ],
)
def test_a_table_that_reaches_its_own_memories_alone_is_taken(keys):
    assert http(**keys).operations


def test_the_old_word_for_the_number_of_hits_is_answered_by_the_new_one():
    asked = {**APART, "body": {"q": "{query}", "user": "{user}", "limit": "{k}"}}
    with pytest.raises(SetupError, match=r"unknown placeholder \{k\}\. Write \{top_k\}"):
        http(url="http://127.0.0.1:80", search=asked)
