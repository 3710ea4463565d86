"""`memstory probe` as a person types it: what it prints for a class, a table and an adapter, and what it refuses."""

import json
import os

import pytest

from memstory.conformance import writing
from memstory.conformance.probe import OVER
from memstory.contract.installation import install_command

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


class Numbered(Shelf):
    def add(self, text, user_id):
        super().add(text, user_id)
        return len(self.notes)


class Torn(Numbered):
    def list(self, user_id):
        return {}["torn"]


class Forgetful(Numbered):
    def delete(self, id, user_id):
        self.notes.clear()


class Refusing(Shelf):
    def search(self, query, user_id, limit=5):
        raise ValueError("a query is a mapping")

    def delete_all(self, user_id):
        self.notes.clear()


class Declared(Shelf):
    memstory_capabilities = ["add", "search"]


class Broken(Shelf):
    def __init__(self, path):
        raise OSError("the shelf fell down")
"""
NEEDY = """
from memstory.controls import OracleFactory


class Factory(OracleFactory):
    async def start(self, folder):
        raise ModuleNotFoundError("no module", name="httpx")
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
    assert "another user's memory" in found["scope.user"]["why"]
    assert found["add.metadata.lists"]["why"].endswith(" add.metadata")


def test_what_holds_is_printed_as_a_declaration_for_the_class(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Shelf")
    declared = said.out.rpartition("memstory_capabilities = ")[2].partition("]")[0]
    assert {"add", "search", "add.exact"} <= set(json.loads(f"{declared}]"))
    assert "scope.user" not in declared
    assert "persistent" not in declared
    assert said.out.index("DOES NOT HOLD") < said.out.index("another user's memory")


def test_a_class_that_declares_and_keeps_it_ends_well(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Declared")
    assert said.code == 0
    assert "What it declares, and holds" in said.out


def test_an_adapter_gets_the_line_for_its_factory(terminal):
    said = terminal.type("probe", "control:leaky")
    assert said.code == 1
    assert 'return frozenset(["add"' in said.out
    assert "a search finds another user's memory" in said.out


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
    assert {(one["holds"], one["why"]) for one in json.loads(said.out)} == {(None, OVER)}
    assert said.code == 0


def test_what_other_tests_wait_for_is_tried_first_for_time_may_run_out(terminal, shelf, monkeypatch):
    tried = []

    def note(_suite, word, _end):
        tried.append(word)
        return True, ""

    monkeypatch.setattr("memstory.conformance.probe._try_capability", note)
    assert terminal.type("probe", f"{shelf}:Shelf").code == 0
    assert tried.index("add.metadata") < tried.index("add.exact")


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


def test_a_package_that_is_missing_is_told_in_one_line_with_what_to_install(terminal, monkeypatch):
    monkeypatch.syspath_prepend(str(terminal.folder))
    terminal.save(NEEDY, "probed_needy.py")
    said = terminal.type("probe", "probed_needy:Factory")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert f"needs the package 'httpx', which is not installed. Install it with: {install_command('http')}" in said.err


def test_where_nothing_is_found_nothing_else_is_tried_and_nothing_is_declared(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Refusing")
    assert said.code == 1
    assert said.out.count("a query is a mapping") == 2
    assert "not tried, for it needs add, search" in said.out
    assert "search.min_score" not in said.out
    assert "Make add and search hold first. What needs this was not tried." in said.out
    assert "where one misleads" in " ".join(said.out.split())
    assert "memstory_capabilities" not in said.out


def test_what_there_is_no_operation_for_is_named_together_and_has_no_row(terminal, shelf):
    said = terminal.type("probe", f"{shelf}:Shelf")
    (line,) = [
        " ".join(part.split()) for part in said.out.split("\n\n") if part.startswith("What it has nothing for: ")
    ]
    assert "add.key" in line
    assert "context" in line
    assert "add.metadata," not in line
    assert "does not support" not in said.out


def test_a_person_at_a_terminal_is_told_that_it_takes_a_while(terminal, shelf, monkeypatch):
    monkeypatch.setattr("memstory.commands.authoring.probe.is_watched", lambda: True)
    assert "for 300 s at most" in terminal.type("probe", f"{shelf}:Declared").err
