"""`memstory explore` as a person types it: what it prints, writes and refuses."""

import json
import sys

import pytest

from memstory.cli import main
from memstory.commands.running import explore
from memstory.exploring.record import write_record

SHELF = """
class Shelf:
    def __init__(self, path):
        self.notes = []

    def add(self, text, user_id):
        self.notes.append(text)

    def search(self, query, user_id, limit=5):
        return self.notes[:limit]

    def list(self, user_id):
        return self.notes
"""
LEAKY = ("explore", "--target", "control:listing_deleted", "--examples", "20", "--seconds", "600", "--seed", "1")


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a command in a folder of its own; return its exit code, what it printed, and what it said on stderr."""
    monkeypatch.chdir(tmp_path)

    def type_in(*words):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return type_in


def test_what_is_found_is_printed_and_written_with_its_story(typed, tmp_path):
    code, printed, _ = typed(*LEAKY)
    assert code == 1
    folder = tmp_path / "reports/explore"
    (exploration,) = json.loads((folder / "explore.json").read_text())["explorations"]
    assert (exploration["target"], exploration["seed"], exploration["examples"]) == ("control:listing_deleted", 1, 20)
    assert exploration["findings"]
    for finding in exploration["findings"]:
        assert finding["says"] in printed
    stories = sorted(folder.glob("*.story.yaml"))
    assert len(stories) == len(exploration["findings"])
    assert all(str(story.relative_to(tmp_path)) in printed for story in stories)
    assert "## control:listing" in (folder / "explore.md").read_text()


def test_a_sound_memory_ends_with_0(typed):
    code, printed, _ = typed("explore", "--target", "control:oracle", "--examples", "5")
    assert (code, printed.splitlines()[0].partition(" in ")[0]) == (0, "control:oracle: 0 found")


def test_known_findings_are_passed_over_and_said_to_be_gone_where_they_are_not_met(typed, tmp_path):
    typed(*LEAKY)
    (exploration,) = json.loads((tmp_path / "reports/explore/explore.json").read_text())["explorations"]
    names = [finding["promise"] + "/" + finding["op"] + "/" + (", ".join(finding["features"]) or "plain")
             for finding in exploration["findings"]]  # fmt: skip
    tables = [f'[[known]]\ntarget = "control:listing_deleted"\nfinding = "{name}"\nreason = "ticket 7"\n'
              for name in [*names, "kept/list/plain"]]  # fmt: skip
    (tmp_path / "known.toml").write_text("".join(tables))
    code, printed, _ = typed(*LEAKY, "--known", "known.toml")
    assert code == 0
    assert all(f"known: {name}: ticket 7" in printed for name in names)
    assert "gone this time: kept/list/plain: ticket 7" in printed


def test_a_replay_runs_the_stories_again(typed):
    typed(*LEAKY)
    again = ("explore", "--replay", "reports/explore", "--target")
    code, printed, _ = typed(*again, "control:listing_deleted")
    assert (code, {line.rpartition(": ")[2] for line in printed.splitlines()}) == (1, {"failed"})
    code, printed, said = typed(*again, "control:oracle")
    assert (code, printed) == (2, "")
    assert "control:listing_deleted" in said


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--target", "control:nobody"), "control:nobody"),
        (("--target", "control:oracle", "--seconds", "0"), "'0'"),
        (("--target", "control:oracle", "--examples", "-3"), "'-3'"),
        (("--target", "control:oracle", "--target-option", "embedder"), "NAME=VALUE"),
        (("--target", "control:oracle", "--known", "none.toml"), "none.toml"),
        (("--target", "control:oracle", "--known", "list.toml"), "[[known]]"),
        (("--target", "control:oracle", "--replay", "none"), "memstory explore --target"),
        ((), "--target"),
    ],
)
def test_bad_input_is_one_message(typed, tmp_path, words, names):
    (tmp_path / "list.toml").write_text('[[known]]\ntarget = "x"\n')
    code, printed, said = typed("explore", *words)
    assert (code, printed) == (2, "")
    assert names in said
    assert "Traceback" not in said


def test_the_record_of_another_program_is_a_message(typed, tmp_path):
    (tmp_path / "explore.json").write_text("{}")
    code, _, said = typed("explore", "--target", "control:oracle", "--replay", "explore.json")
    assert (code, "explore.json: this is no record" in said) == (2, True)


def test_stories_of_an_earlier_exploration_do_not_stay(typed, tmp_path):
    typed(*LEAKY)
    typed("explore", "--target", "control:oracle", "--examples", "2")
    assert not [*(tmp_path / "reports/explore").glob("*.story.yaml")]


def test_the_gate_finds_what_an_older_exploration_has_not(typed):
    sound = ("explore", "--target", "control:listing_deleted", "--examples", "1", "--report", "old")
    assert typed(*sound)[0] == 0
    typed(*LEAKY)
    code, printed, _ = typed("gate", "reports/explore", "--baseline", "old/explore.json")
    assert (code, "regression: control:listing_deleted: deleted/list" in printed) == (1, True)
    assert typed("gate", "reports/explore", "--baseline", "new.json", "--update")[0] == 0
    assert typed("gate", "reports/explore", "--baseline", "new.json")[:2] == (
        0,
        "nothing changed\ngate: passed (1 exploration compared)\n",
    )
    code, _, said = typed("gate", "reports/explore", "--baseline", "none.json")
    assert (code, "none.json" in said) == (2, True)


def test_a_class_in_the_folder_is_explored(typed, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "shelf_of_notes.py").write_text(SHELF)
    code, printed, _ = typed("explore", "--target", "shelf_of_notes:Shelf", "--findings", "1", "--seconds", "600")
    assert (code, printed.partition(" found in ")[0]) == (1, "shelf_of_notes:Shelf: 1")


def test_ctrl_c_prints_what_was_found_until_then(typed, tmp_path, monkeypatch):
    played = []

    def interrupted(folder, record):
        write_record(folder, record)
        if played.append(record) or any(one.findings for one in record.explorations):
            raise KeyboardInterrupt

    monkeypatch.setattr(explore, "write_record", interrupted)
    code, printed, said = typed(*LEAKY)
    assert code == 130
    assert "control:listing_deleted: 1 found in " in printed
    assert "interrupted" in said
    assert len([*(tmp_path / "reports/explore").glob("*.story.yaml")]) == 1
