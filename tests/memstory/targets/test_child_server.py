"""Which program a command starts."""

import json
import os

import pytest

from memstory.targets.child_server import program_of


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Return a function that installs a package of a name with programs; `npm` says where it lies, and how often."""
    folder = tmp_path / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    tool = tmp_path / "tools" / "npm"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/asked\necho "{folder}:$PATH"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    program_of.cache_clear()

    def install(package, bins, *, programs):
        home = tmp_path / "node_modules" / package
        home.mkdir(parents=True)
        (home / "package.json").write_text(json.dumps({"bin": bins}))
        for name in programs:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        return folder, tmp_path / "asked"

    yield install
    program_of.cache_clear()


@pytest.mark.parametrize(
    ("bins", "program"),
    [
        ("index.js", "server-memory"),
        ({"mcp-server-memory": "index.js"}, "mcp-server-memory"),
        ({"other": "other.js", "server-memory": "index.js"}, "server-memory"),
    ],
)
def test_npx_is_asked_once_for_the_program_of_a_package(npm, bins, program):
    folder, asked = npm("@org/server-memory", bins, programs=["server-memory", "mcp-server-memory", "other"])
    command = ("npx", "-y", "@org/server-memory@1.2.3", "--path", "x")
    assert [program_of(command) for _ in range(3)] == [(str(folder / program), "--path", "x")] * 3
    assert asked.read_text().splitlines() == ['exec --yes --package=@org/server-memory@1.2.3 -c echo "$PATH"']


@pytest.mark.parametrize(
    ("bins", "programs"),
    [({"one": "1.js", "two": "2.js"}, ["one", "two"]), ({"one": "1.js"}, []), (None, []), ({}, [])],
)
def test_npx_stays_where_it_is_not_plain_what_it_starts(npm, bins, programs):
    npm("server", bins, programs=programs)
    command = ("npx", "-y", "server")
    assert program_of(command) == command


@pytest.mark.parametrize("command", [("npx",), ("npx", "-p", "a", "b"), ("npx", "./server.js"), ("uvx", "server")])
def test_any_other_command_stays_and_nothing_is_asked(npm, command):
    _, asked = npm("server", "index.js", programs=["server"])
    assert program_of(command) == command
    assert not asked.exists()
