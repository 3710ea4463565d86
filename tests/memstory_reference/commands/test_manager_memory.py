"""The manager memory at the terminal: talk, list, search, forget, export, as a person types it."""

import io
import json
import sys

import pytest

from memstory_reference.cli import main

pytestmark = pytest.mark.usefixtures("minilm_weights")


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a command for the store of the test; `said` are the lines of a conversation."""

    def run(*words, said=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(said))
        code = main([*words, "--system", "manager", "--store", str(tmp_path / "store")])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def test_what_was_said_is_listed_found_exported_and_forgotten_with_its_turns(typed):
    code, out, _ = typed(
        "chat", said="Please remember that my name is Plimquart.\nWhat do you know about me?\n/list fact\n"
    )
    assert (code, out.count('I remember: "my name is Plimquart".')) == (0, 1)
    rows = json.loads(typed("memory", "list", "--json")[1])
    assert sorted(row["kind"] for row in rows) == ["conversation", "conversation", "fact"]
    (fact,) = json.loads(typed("memory", "list", "--kind", "fact", "--json")[1])
    assert json.loads(typed("memory", "search", "What is my name?", "--top-k", "1", "--json")[1])[0]["id"] == fact["id"]
    assert len(typed("memory", "export")[1].splitlines()) == 3
    assert "conversation 2, fact 1, context 0" in typed("memory", "status")[1]
    code, out, _ = typed("memory", "forget", fact["id"][:8], "--yes")
    assert (code, out) == (0, "Forgotten: 3.\n")
    assert typed("memory", "list")[1] == "Nothing is remembered.\n"


def test_a_talk_forgets_by_id_and_a_new_session_sees_no_context(typed):
    typed("chat", said="Remember that I keep bees in Graz.\n")
    (fact,) = json.loads(typed("memory", "list", "--kind", "fact", "--json")[1])
    code, out, _ = typed("chat", said=f"/search bees\n/new\n/forget {fact['id'][:8]}\n/list fact\n/forget nothing\n")
    assert code == 1
    assert f"Forgotten: {fact['id'][:8]}, and 1 more that say it." in out
    assert "Nothing is remembered." in out
    assert "nothing is remembered under 'nothing'" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("memory", "list"), "no memory is stored here"),
        (("chat", "--toolset", "dual"), "--toolset is nothing that the manager memory has"),
        (("chat", "--owner", " "), "owner is blank"),
    ],
)
def test_what_makes_no_sense_is_one_line(typed, words, said):
    code, _, err = typed(*words)
    assert (code, err.count("\n")) == (1, 1)
    assert said in err
