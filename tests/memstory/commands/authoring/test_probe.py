"""`memstory probe` as a person types it: what it prints for a class, a table and an adapter, and what it refuses."""

import json
import os

import pytest

from memstory.conformance import writing

SHELF = """
class Shelf:
    def __init__(self, path, colour="green"):
        self.notes = []

    def add(self, text, user_id):
        self.notes.append((user_id, text))

    def search(self, query, user_id, limit=5):
        return [text for user, text in self.notes if user == user_id][:limit]

    def list(self, user_id):
        return [text for _, text in self.notes]


class Torn(Shelf):
    def list(self, user_id):
        return {}["torn"]


class Forgetful(Shelf):
    def delete(self, id, user_id):
        self.notes.clear()


class Declared(Shelf):
    memstory_capabilities = ["add", "search"]


class Broken(Shelf):
    def __init__(self, path):
        raise OSError("the shelf fell down")
"""


@pytest.fixture
def shelf(terminal, monkeypatch):
    """A module of its own for each test, with a class that promises more than it keeps."""
    monkeypatch.syspath_prepend(str(terminal.folder))
    module = f"probed_{os.getpid()}_{abs(hash(terminal.folder))}"
    terminal.save(SHELF, f"{module}.py")
    return module


def test_each_promise_of_a_class_is_tried_and_so_is_what_it_does_not_promise(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Shelf", "--json")
    found = {one["capability"]: one for one in json.loads(said.out)}
    assert said.code == 1
    assert {word: found[word]["holds"] for word in ("add", "search", "scope.user", "persistent", "add.exact")} == {
        "add": True,
        "search": True,
        "scope.user": False,
        "persistent": False,
        "add.exact": True,
    }
    assert {word for word, one in found.items() if one["promised"]} == {
        *("add", "add.verbatim", "search", "list", "scope.user", "restart", "persistent")
    }
    assert found["scope.user"]["why"] == "a list shows another user's memory"
    assert found["add.metadata.lists"]["why"] == "not tried, for it needs add.metadata"


def test_what_holds_is_printed_as_a_declaration_for_the_class(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Shelf")
    declared = said.out.rpartition("memstory_capabilities = ")[2].partition("]")[0]
    assert {"add", "search", "add.exact"} <= set(json.loads(f"{declared}]"))
    assert "scope.user" not in declared
    assert said.out.index("its signatures promise, and DOES NOT HOLD") < said.out.index("a list shows another user's")


def test_a_class_that_declares_and_keeps_it_ends_well(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Declared")
    assert said.code == 0
    assert "What it declares, and holds" in said.out


def test_an_adapter_gets_the_line_for_its_factory(terminal):
    said = terminal.type("probe", "control:leaky")
    assert said.code == 1
    assert 'return frozenset(["add"' in said.out
    assert "a search finds another user's memory" in said.out


SERVER = """
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

notes = []


class Notes(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/add":
            notes.append({"id": str(len(notes)), "user": body["user"], "text": body["text"]})
        found = [note for note in notes if note["user"] == body["user"]] if self.path == "/find" else notes[-1]
        data = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


HTTPServer(("127.0.0.1", int(sys.argv[1])), Notes).serve_forever()
"""
TABLE = """
[targets.notes]
type = "http"
command = ["python", "server.py", "{port}"]
lacks = ["crash"]

[targets.notes.add]
path = "/add"
body = { user = "{user}", text = "{text}" }
reply = { id = "id" }

[targets.notes.search]
path = "/find"
body = { user = "{user}", text = "{query}" }
reply = { id = "id", text = "text" }
"""


def test_a_table_gets_what_it_has_beside_its_operations_and_what_it_lacks(terminal):
    terminal.save(SERVER, "server.py")
    terminal.save(TABLE, "memstory.toml")
    said = terminal.type("probe", "notes")
    lines = [line.strip() for line in said.out.splitlines()]
    assert said.code == 1
    assert 'lacks = ["crash", "persistent"]' in lines
    (more,) = [line for line in lines if line.startswith("capabilities = ")]
    assert "add.exact" in more
    assert "after a restart the memory is not found" in said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Broken"], "cannot be opened: OSError: the shelf fell down"),
        (["Shelf", "--target-option", "color=red"], "has no option 'color'. Did you mean 'colour'?"),
        (["Shelves"], "has no 'Shelves'"),
    ],
)
def test_what_cannot_be_probed_is_told_in_one_line(terminal, shelf, words, message):
    said = terminal.type("probe", f"{shelf}:{words[0]}", *words[1:])
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1


def test_what_was_not_tried_in_time_has_no_answer(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Shelf", "--seconds", "0.000001", "--json")
    assert {one["holds"] for one in json.loads(said.out)} == {None}
    assert said.code == 0


def test_a_test_of_ours_that_breaks_is_told_and_not_laid_on_the_memory(terminal, monkeypatch):
    monkeypatch.setattr(writing, "has_files", None)
    with pytest.raises(RuntimeError, match=r"own test of 'delete.erases' broke: TypeError"):
        terminal.type("probe", "control:oracle")


def test_a_method_that_raises_does_not_hold(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Torn", "--json")
    (listed,) = [one for one in json.loads(said.out) if one["capability"] == "list"]
    assert (said.code, listed["holds"]) == (1, False)
    assert "KeyError" in listed["why"]


def test_nobody_can_tell_what_is_left_in_files_where_none_is_written(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Forgetful", "--json")
    (erases,) = [one for one in json.loads(said.out) if one["capability"] == "delete.erases"]
    assert erases["holds"] is None
    assert "no file was written" in erases["why"]
