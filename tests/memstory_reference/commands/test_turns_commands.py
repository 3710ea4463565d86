"""The turns memory at the command line: a conversation is there again, and can be looked at, exported and forgotten."""

import io
import json
import sqlite3
from contextlib import closing

import pytest

from memstory_reference.cli import main

pytestmark = pytest.mark.usefixtures("minilm_weights")


def typed(monkeypatch, lines, *arguments):
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    return main(list(arguments))


def test_what_was_said_is_listed_found_exported_and_forgotten(tmp_path, monkeypatch, capsys):
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    said = "My locker is number 88.\n/search locker\n/status\n/quit\n"
    assert typed(monkeypatch, said, "chat", *place, "--owner", "ann") == 0
    shown = capsys.readouterr().out
    assert "user: My locker is number 88." in shown
    assert "turns 3" in shown
    assert main(["memory", "list", *place, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert ("user", "My locker is number 88.") in [(row["metadata"].get("speaker"), row["text"]) for row in listed]
    assert main(["memory", "search", "which locker", *place, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["memory", "export", *place]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(listed)
    assert main(["memory", "forget", "--all", "--yes", *place]) == 0
    assert main(["memory", "list", *place]) == 0
    assert "Nothing is remembered" in capsys.readouterr().out


def test_what_is_forgotten_by_its_id_goes_with_what_repeats_it_in_a_talk_and_by_command(tmp_path, monkeypatch, capsys):
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    said = "My locker is number 88.\nMy bike is green.\n/quit\n"
    assert typed(monkeypatch, said, "chat", *place, "--owner", "ann") == 0
    capsys.readouterr()
    assert main(["memory", "list", *place, "--json"]) == 0
    ids = {row["text"]: row["id"] for row in json.loads(capsys.readouterr().out)}
    locker, bike = ids["My locker is number 88."], ids["My bike is green."]
    talk = f"/new\n/forget {locker[:8]}\nWhat is my locker?\n/forget\n/forget none\n/quit\n"
    assert typed(monkeypatch, talk, "chat", *place, "--owner", "ann") == 1
    shown = capsys.readouterr().out
    assert shown.count("Forgotten:") == 1
    assert "don't know" in shown
    assert shown.count("! ") == 2
    assert main(["memory", "forget", bike, "--yes", *place]) == 0
    assert main(["memory", "list", *place, "--json"]) == 0
    assert "green" not in capsys.readouterr().out.partition("[")[2]


def test_a_folder_without_turns_is_told_and_nothing_is_made(tmp_path, capsys):
    assert main(["memory", "list", "--system", "turns", "--store", str(tmp_path / "none")]) == 1
    assert "no memory is stored here" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_an_owner_who_has_no_turns_is_told(tmp_path, monkeypatch, capsys):
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    assert typed(monkeypatch, "Hello.\n", "chat", *place, "--owner", "ann") == 0
    assert main(["memory", "list", *place, "--owner", "anna"]) == 1
    assert "'anna' has no memories here" in capsys.readouterr().err


def test_what_was_exported_is_imported_for_another_owner_and_written_again_the_same(tmp_path, monkeypatch, capsys):
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    assert typed(monkeypatch, "My locker is number 88.\n/quit\n", "chat", *place, "--owner", "ann") == 0
    file = tmp_path / "ann.jsonl"
    assert main(["memory", "export", *place, "--owner", "ann", "--output", str(file)]) == 0
    other = ("--system", "turns", "--store", str(tmp_path / "other"), "--owner", "bob")
    assert main(["memory", "import", str(file), *other]) == 0
    assert f"Imported: {len(file.read_text('utf-8').splitlines())} from" in capsys.readouterr().out
    assert main(["memory", "export", *other]) == 0

    def told(lines):
        return [{**json.loads(line), "id": None, "noted_at": None} for line in lines.splitlines()]

    assert told(capsys.readouterr().out) == told(file.read_text("utf-8"))


@pytest.mark.parametrize(
    ("lines", "arguments", "said"),
    [
        ('{"text": "a"}\n{"txt": "b"}\n', ("--owner", "ann"), "row 2: unknown field 'txt'"),
        ('{"text": "a"}\n', (), "--owner"),
        (None, ("--owner", "ann"), "cannot be read"),
        ('{"text": "a"}\n{"text": " "}\n', ("--owner", "ann"), "text is blank"),
        ('{"text": "a"}\n', ("--owner", "ann", "--system", "layers"), "row 1: the field 'type' is missing"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_whole(tmp_path, capsys, lines, arguments, said):
    file = tmp_path / "turns.jsonl"
    if lines is not None:
        file.write_text(lines, "utf-8")
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    assert main(["memory", "import", str(file), *place, *arguments]) == 1
    assert said in capsys.readouterr().err
    main(["memory", "list", *place, *arguments])
    assert "a" not in capsys.readouterr().out.split()


def test_an_owner_whose_file_is_damaged_is_told_of_and_the_others_are_shown(tmp_path, capsys, caplog):
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    for owner in ("ann", "bob"):
        (tmp_path / "told").write_text(json.dumps({"text": f"{owner} likes tea."}))
        assert main(["memory", "import", str(tmp_path / "told"), *place, "--owner", owner]) == 0
    (file,) = [one for one in (tmp_path / "store").glob("*.sqlite3") if b"ann likes" in one.read_bytes()]
    file.write_bytes(b"no database at all" * 100)
    capsys.readouterr()
    assert main(["memory", "list", *place, "--json"]) == 0
    assert [row["text"] for row in json.loads(capsys.readouterr().out)] == ["bob likes tea."]
    assert [one for one in caplog.messages if one.startswith("ann is left out") and file.name in one]
    assert main(["memory", "status", *place]) == 0
    assert capsys.readouterr().out == "bob: turns 1\n"
    assert main(["memory", "list", *place, "--owner", "ann"]) == 1
    assert file.name in capsys.readouterr().err


def test_a_damaged_turn_is_in_the_status(tmp_path, capsys):
    place = ("--system", "turns", "--store", str(tmp_path / "store"))
    (tmp_path / "told").write_text('{"text": "One."}\n{"text": "Two."}\n')
    assert main(["memory", "import", str(tmp_path / "told"), *place, "--owner", "ann"]) == 0
    (file,) = [one for one in (tmp_path / "store").glob("*.sqlite3") if b"Two." in one.read_bytes()]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE turns SET metadata = '' WHERE text = 'One.'")
    capsys.readouterr()
    assert main(["memory", "status", *place]) == 0
    assert capsys.readouterr().out == "ann: turns 1, unreadable 1\n"
