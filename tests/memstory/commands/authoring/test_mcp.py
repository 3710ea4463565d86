import json
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from memstory.targets.tables.reading import parse_table

SERVER = Path(__file__).parents[2] / "targets/fake_mcp_server.py"


def test_a_server_is_inspected_and_its_draft_is_a_table(terminal):
    said = terminal.type("mcp", "inspect", "--name", "fake", sys.executable, str(SERVER), "data.json")
    assert said.code == 0, said.err
    assert "fake 1.0: 7 tools" in said.err
    drafted = tomllib.loads(said.out)["targets"]["fake"]
    assert drafted["command"] == [sys.executable, str(SERVER), "data.json"]
    assert drafted["add"]["args"]["text"] == "{text}"
    assert (drafted["search"]["tool"], drafted["search"]["args"]["k"]) == ("recall", "{top_k}")
    assert (drafted["delete"]["tool"], drafted["get"]["args"]["id"]) == ("forget", "{id}")


def test_a_server_beside_which_it_is_typed_is_found(terminal):
    terminal.save(SERVER.read_text("utf-8"), "server.py")
    said = terminal.type("mcp", "inspect", sys.executable, "server.py", "data.json")
    assert said.code == 0, said.err
    assert tomllib.loads(said.out)["targets"]["mine"]["command"] == [sys.executable, "server.py", "data.json"]


def test_without_the_extra_the_command_that_installs_it_is_named(terminal, monkeypatch):
    monkeypatch.delitem(sys.modules, "memstory.targets.tables.mcp_session", raising=False)
    monkeypatch.setitem(sys.modules, "anyio", None)
    said = terminal.type("mcp", "inspect", sys.executable, str(SERVER), "data.json")
    assert (said.code, said.out) == (2, "")
    assert "'mcp', which is not installed: 'anyio' is not here. Install it with: pip install " in said.err


def test_another_version_of_the_package_is_not_called_missing(terminal, monkeypatch):
    monkeypatch.delitem(sys.modules, "memstory.targets.tables.mcp_session", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", ModuleType("mcp"))
    said = terminal.type("mcp", "inspect", sys.executable, str(SERVER), "data.json")
    assert (said.code, said.out) == (2, "")
    assert f"another version of the package 'mcp' than {version('mcp')}" in said.err
    assert "'Client'" in said.err
    assert "not installed" not in said.err


def test_a_draft_runs_when_what_it_asks_for_is_filled_in(terminal):
    words = ["--env", "HOME={workspace}", sys.executable, str(SERVER), "data.json"]
    said = terminal.type("mcp", "inspect", "--json", *words)
    drafted = tomllib.loads(json.loads(said.out)["draft"])["targets"]["mine"]
    assert drafted["env"] == {"HOME": "{workspace}"}
    drafted["search"]["reply"] = {"at": "hits", "id": "id", "text": "text"}
    drafted["get"]["reply"] = {"id": "id", "text": "text"}
    drafted["list"]["reply"] = {"at": "memories", "id": "id", "text": "text"}
    assert {"add", "search", "list", "get"} <= set(parse_table("mine", drafted, "memstory.toml").operations)


def test_words_after_the_command_are_the_servers_own(terminal):
    said = terminal.type("mcp", "inspect", "--", sys.executable, str(SERVER), "data.json", "--noise", "--json")
    assert said.code == 2
    assert "unrecognized arguments: --json" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "COMMAND or --url"),
        (["--url", "http://127.0.0.1:1/mcp", "serve"], "COMMAND or --url"),
        (["--name", "a b", "serve"], "--name 'a b'"),
        (["--env", "X", "serve"], "--env 'X'"),
        (["no-such-server-anywhere"], "'no-such-server-anywhere'"),
        (["--url", "http://127.0.0.1:9/mcp"], "mine: the server"),
        (["--url", "ftp://x"], "'url'"),
        (["echo", "hello"], "1, the last: hello"),
        (["{nobody}"], "unknown placeholder {nobody}"),
    ],
)
def test_what_cannot_be_inspected_is_told_in_one_line(terminal, words, message):
    said = terminal.type("mcp", "inspect", *words)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("memstory mcp: ")
    assert message in said.err


def test_targets_are_listed_with_those_of_this_folder(terminal):
    terminal.save(
        '[targets.mine]\ntarget = "memstory.controls:OracleFactory"\n[targets.odd]\ntype = "x"\n', "memstory.toml"
    )
    said = terminal.type("list", "targets", "--json")
    rows = {row["target"]: row for row in json.loads(said.out)}
    assert (rows["mine"]["from"], "search" in rows["mine"]["can"]) == ("memstory.toml", True)
    assert rows["odd"]["problem"].startswith('memstory.toml: [targets.odd] type = "x".')
    assert rows["mcp-server-memory"]["from"] == "memstory"
    assert rows["reference"]["can"][0] == "group:"
    assert "mine" in terminal.type("list", "targets").out


def test_calls_are_made_in_order_of_one_server_and_their_replies_shown(terminal):
    calls = [
        "--tool",
        "remember",
        '{"text": "The bus leaves at six.", "user": "ann"}',
        "--tool",
        "all",
        '{"user": "ann"}',
    ]
    said = terminal.type("mcp", "call", *calls, sys.executable, str(SERVER), "data.json")
    assert said.code == 0, said.err
    assert said.out.index('remember {"text"') < said.out.index('"memory": {') < said.out.index("all {")
    assert '"text": "The bus leaves at six."' in said.out[said.out.index("all {") :]


def test_a_call_that_fails_says_so_and_ends_with_1(terminal):
    said = terminal.type("mcp", "call", "--json", "--tool", "no_such", "{}", sys.executable, str(SERVER), "data.json")
    (reply,) = json.loads(said.out)
    assert (said.code, reply["tool"]) == (1, "no_such")
    assert reply["problem"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["call", "serve"], "--tool NAME JSON"),
        (["inspect", "--tool", "all", "{}", "serve"], "'inspect'"),
        (["call", "--tool", "all", "{user}", "serve"], "--tool all: "),
        (["call", "--tool", "all", "[1]", "serve"], "--tool all: "),
    ],
)
def test_a_call_that_cannot_be_made_is_one_line(terminal, words, message):
    said = terminal.type("mcp", *words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err


def test_the_help_of_an_action_says_what_it_does_with_examples_and_exit_codes(terminal):
    said = terminal.type("mcp", "inspect", "--help")
    assert said.code == 0
    assert said.out == terminal.type("mcp", "--help").out
    assert "Start an MCP server" in said.out
    assert "examples:" in said.out
    assert "exit codes:" in said.out
