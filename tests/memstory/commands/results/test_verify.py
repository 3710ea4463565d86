"""A pack is judged again by whoever has it: what is whole, what was changed, and what nobody can check."""

import hashlib
import json
import zipfile

import pytest

from memstory.commands.results.verify import verify_pack
from memstory.results.folder.pack import read_pack

MEASURED = """\
story: M
title: Which dog answers
measure: true
retrieval: {dataset: longmemeval, split: oracle, k: 2, cuts: [1]}
"""
ENTRY = {
    "question_id": "e1",
    "question_type": "multi-session",
    "question": "Which dog does Ana have?",
    "answer": "a beagle",
    "haystack_session_ids": ["answer_1", "noise_1"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21"] * 2,
    "haystack_sessions": [
        [{"role": "user", "content": "Ana has a beagle, a dog.", "has_answer": True}],
        [{"role": "user", "content": "A ring is a set."}],
    ],
    "answer_session_ids": ["answer_1"],
}


@pytest.fixture
def pack(terminal, tmp_path, monkeypatch):
    """Return a function that runs a story, packs the run and gives the pack's path."""
    monkeypatch.setenv("MEMSTORY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MEMSTORY_LONGMEMEVAL_ORACLE", str(tmp_path / "set.json"))

    def go(text=None):
        (tmp_path / "set.json").write_text(json.dumps([ENTRY]))
        if text is None:
            terminal.save()
        else:
            terminal.save(text)
        terminal.record()
        said = terminal.type("submit", "out")
        assert said.code == 0, said.err
        return tmp_path / "out.memstory.zip"

    return go


def changed(path, name, change):
    """Change a file of a pack, and put its new hash into the list, as a forger would."""
    with zipfile.ZipFile(path) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    files[name] = change(files[name].decode()).encode()
    listed = json.loads(files["pack.json"])
    listed["files"][name] = hashlib.sha256(files[name]).hexdigest()
    files["pack.json"] = json.dumps(listed).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in files.items():
            archive.writestr(one, content)
    return path


def test_a_whole_pack_is_verified_and_says_what_it_cannot_check(pack, terminal):
    said = terminal.type("verify", str(pack()))
    assert said.code == 0
    assert "verified: 1 recording judged again" in said.out
    assert "not checked: that this target, of the version it names, gave these hits" in said.out
    assert "not checked: what is not memstory's own: 1 story, tea" in said.out


def test_a_pack_has_the_file_of_rows_that_its_story_names(pack, terminal):
    (terminal.folder / "rows.jsonl").write_text('{"drink": "tea"}\n{"drink": "milk"}\n')
    steps = "steps: [{add: 'I drink ${drink}'}, {search: '${drink}', expect: {hits: {count: 1}}}]\n"
    path = pack(f"story: R\ntitle: A drink\nparametrize: {{file: ./rows.jsonl}}\n{steps}")
    (terminal.folder / "rows.jsonl").unlink()
    said = terminal.type("verify", str(path))
    assert "verified: 2 recordings judged again" in said.out
    (name,) = [one for one in read_pack(path).stories if ".rows/" in one]
    assert name.endswith(".rows/.%2Frows.jsonl")
    changed(path, f"stories/{name}", lambda text: text.replace("milk", "mead"))
    assert "milk]: the pack does not have the story that it ran" in terminal.type("verify", str(path)).out


def test_an_outcome_that_does_not_follow_from_the_recording_is_wrong(pack, terminal):
    path = changed(pack(), "recordings.jsonl", lambda text: text.replace("Ana drinks tea", "Ana drinks ale"))
    with zipfile.ZipFile(path) as archive:
        assert b"ale" in archive.read("recordings.jsonl")
    path = changed(path, "stories/a.story.yaml", lambda text: text.replace("count: 1", "count: 2"))
    said = terminal.type("verify", str(path))
    assert said.code == 1
    assert "WRONG" in said.out
    assert "the pack does not have the story that it ran" in said.out


def test_a_score_that_does_not_follow_from_the_hits_is_wrong(pack, terminal):
    path = changed(pack(MEASURED), "results.json", lambda text: text.replace('"recall@2":1.0', '"recall@2":0.5'))
    said = terminal.type("verify", str(path))
    assert said.code == 1
    assert "recall@2 is 0.5 in the results, and 1.0 by the recordings" in said.out


def test_gold_that_is_not_that_of_the_data_here_is_wrong(pack, terminal, tmp_path):
    path = pack(MEASURED)
    assert "the gold of" not in terminal.type("verify", str(path)).out
    (tmp_path / "set.json").write_text(json.dumps([ENTRY]).replace("Ana has", "Ann has").replace("answer_1", "told_1"))
    said = terminal.type("verify", str(path))
    assert said.code == 1
    assert "M[control:oracle]: 1 question with other gold than the data here: e1" in said.out
    assert "what both have is compared" in said.out


def test_without_the_data_the_gold_is_not_checked_and_that_is_said(pack, terminal, monkeypatch):
    path = pack(MEASURED)
    monkeypatch.delenv("MEMSTORY_LONGMEMEVAL_ORACLE")
    said = terminal.type("verify", str(path))
    assert said.code == 0
    assert "not checked: the gold of longmemeval-turn: its data are not on this machine" in said.out


def test_a_file_that_was_changed_afterwards_is_told(pack, terminal):
    path = pack()
    with zipfile.ZipFile(path) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for one, content in files.items():
            archive.writestr(one, content + b" " if one == "results.json" else content)
    said = terminal.type("verify", str(path))
    assert said.code == 2
    assert said.err.endswith("is not as it was packed: results.json changed or is missing\n")


@pytest.mark.parametrize("content", [b"", b"PK", b"{}"])
def test_what_is_no_pack_is_one_line(terminal, tmp_path, content):
    (tmp_path / "no.zip").write_bytes(content)
    said = terminal.type("verify", str(tmp_path / "no.zip"))
    assert said.code == 2
    assert "is no pack of a run" in said.err
    assert len(said.err.splitlines()) == 1


def test_the_same_run_makes_the_same_pack(pack, terminal):
    first = pack()
    before = first.read_bytes()
    assert terminal.type("submit", "out").code == 0
    assert first.read_bytes() == before
    assert verify_pack(read_pack(first)).wrong == []


def test_the_page_has_a_row_for_each_measurement_and_the_hash_of_each_pack(pack, terminal, tmp_path):
    path = pack(MEASURED)
    said = terminal.type("verify", str(path), "--page", str(tmp_path / "page.md"))
    assert said.code == 0, said.out
    page = (tmp_path / "page.md").read_text()
    assert "| control:oracle | M | 1 | 1.000 |" in page.replace("\\", "")
    assert read_pack(path).digest in page


def test_a_wrong_pack_has_no_page(pack, terminal, tmp_path):
    path = changed(pack(MEASURED), "results.json", lambda text: text.replace('"recall@2":1.0', '"recall@2":0.5'))
    assert terminal.type("verify", str(path), "--page", str(tmp_path / "page.md")).code == 1
    assert not (tmp_path / "page.md").exists()
