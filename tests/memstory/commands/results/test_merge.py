"""What `memstory merge` refuses; that merged equals unsharded is tested with the plugin."""

from __future__ import annotations

import gzip
import json

import pytest

from memstory.contract.codec import encode
from memstory.pytest_plugin.selection import part_of
from memstory.pytest_plugin.shards import Deal, Shard

CASES = {1: ["S1", "S3"], 2: ["S2"]}


@pytest.fixture
def shard(terminal):
    """Return a function that leaves a shard of two in a folder, with parts of its fingerprint changed."""

    def made(number, folder=None, *, stories=None, complete=True, **changed):
        text = "---".join(
            f"\nstory: {name}\ntitle: t\nsteps: [{{add: {name}}}, {{search: {name}, expect: {{hits: {{count: 1}}}}}}]\n"
            for name in stories or CASES[number]
        )
        terminal.save(text)
        terminal.record()
        number = changed.pop("same", number)
        target = terminal.folder / (folder or f"s{number}")
        (terminal.folder / "out").rename(target)
        results = target / "results.json"
        document = json.loads(results.read_text())
        every = [(name,) for names in CASES.values() for name in names]
        part = part_of(Deal(Shard(number=number, count=2)), every, len(CASES[number]))
        own = {"count", "digest", "of", "cases"}
        document["fingerprint"]["shard"] = encode(part) | {key: changed[key] for key in own & changed.keys()}
        document["fingerprint"] |= {key: value for key, value in changed.items() if key not in own}
        document["complete"] = complete
        results.write_text(json.dumps(document))
        return target

    return made


def merge(terminal, *folders, output="merged", partial=False):
    return terminal.type("merge", *folders, "--output", output, *(["--partial"] * partial))


def pack(folder):
    """Gzip what a shard left, as somebody does who keeps a hundred of them."""
    for name in ("results.json", "recordings.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    return folder


def test_shards_become_one_run_without_a_shard(terminal, shard):
    shard(1)
    shard(2)
    said = merge(terminal, "s1", "s2")
    assert (said.code, said.out, said.err) == (0, "merged: 2 shards, 3 passed, 0 failed\n", "")
    document = json.loads((terminal.folder / "merged/results.json").read_text())
    assert [case["id"] for case in document["cases"]] == [f"S{n}[control:oracle]" for n in (1, 2, 3)]
    assert "shard" not in document["fingerprint"]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"same": 1}, ["shard 1 of 2 is there 2 times: s1, other", "shard 2 of 2 is missing"]),
        ({"count": 3}, ["the number of shards is 2 in s1, 3 in other"]),
        ({"digest": "f" * 32, "of": 9}, ["what was selected is 3 cases (", "9 cases (ffffffff) in other"]),
        ({"options": {"chat": "big"}}, ["options is {} in s1, {'chat': 'big'} in other"]),
        ({"memstory": "9.9"}, ["memstory is 0.1.0 in s1, 9.9 in other"]),
        ({"stories": ["S1"]}, ["the case S1[control:oracle] is in s1 and other"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_what_are_not_the_shards_of_one_run_is_refused_and_nothing_is_written(terminal, shard, second, said, packed):
    shard(1)
    other = shard(2, "other", **second)
    if packed:
        pack(other)
    found = merge(terminal, "s1", "other")
    assert found.code == 2
    for text in ["these are not the shards of one run:", *said]:
        assert text in found.err
    assert not (terminal.folder / "merged").exists()


def test_a_missing_shard_is_named(terminal, shard):
    shard(1)
    assert "shard 2 of 2 is missing" in merge(terminal, "s1").err


def test_a_whole_run_is_no_shard(terminal, shard):
    shard(1)
    terminal.record()
    said = merge(terminal, "s1", "out")
    assert (said.code, "out is not a shard" in said.err) == (2, True)


def test_a_shard_named_twice_and_an_output_among_the_shards_are_refused(terminal, shard):
    shard(1)
    shard(2)
    assert "s1 is named twice" in merge(terminal, "s1", "s1").err
    said = terminal.type("merge", "s1", "s2", "--output", "s1")
    assert (said.code, "s1 holds one of the shards" in said.err) == (2, True)
    assert (terminal.folder / "s1/results.json").exists()
    terminal.save("", "file")
    said = terminal.type("merge", "s1", "s2", "--output", "file")
    assert said.err == "memstory merge: nothing can be written to file: File exists. Name another --output\n"


@pytest.mark.parametrize("cut", [{"complete": False}, {"cases": 2}])
def test_a_shard_that_was_cut_short_makes_the_whole_incomplete(terminal, shard, cut):
    shard(1)
    shard(2, **cut)
    said = merge(terminal, "s1", "s2")
    assert (said.code, "cut short: s2 has 1 of its" in said.err) == (0, True)
    assert json.loads((terminal.folder / "merged/results.json").read_text())["complete"] is False


def test_without_all_recordings_the_merged_run_has_none_and_says_so(terminal, shard):
    shard(1)
    (shard(2) / "recordings.jsonl").unlink()
    said = merge(terminal, "s1", "s2")
    assert (said.code, "without recordings: s2 has no recordings.jsonl" in said.err) == (0, True)
    assert not (terminal.folder / "merged/recordings.jsonl").exists()


def test_a_single_shard_is_neither_judged_by_the_gate_nor_made_a_baseline(terminal, shard):
    shard(1)
    shard(2)
    merge(terminal, "s1", "s2")
    assert terminal.type("gate", "merged", "--baseline", "base.json", "--update").code == 0
    said = terminal.type("gate", "s1", "--baseline", "base.json")
    assert (said.code, "this run is only shard 1 of 2: merge all shards first" in said.out) == (2, True)
    said = terminal.type("gate", "s1", "--baseline", "base.json", "--update")
    assert (said.code, "only shard 1 of 2 and cannot become the baseline" in said.err) == (2, True)
    said = terminal.type("gate", "s1", "--baseline", "new.json", "--update")
    assert (said.code, (terminal.folder / "new.json").exists()) == (2, False)


def test_gzipped_shards_become_the_same_run(terminal, shard):
    shard(1)
    shard(2)
    merge(terminal, "s1", "s2", output="plain")
    pack(terminal.folder / "s1")
    said = merge(terminal, "s1/results.json.gz", "s2", output="packed")
    assert (said.code, said.err) == (0, "")
    for name in ("results.json", "recordings.jsonl", "report.md"):
        plain, packed = (terminal.folder / folder / name for folder in ("plain", "packed"))
        assert packed.read_bytes() == plain.read_bytes()


def test_a_folder_with_two_results_is_refused(terminal, shard):
    shard(1)
    pack(shard(2))
    (terminal.folder / "s2/results.json").write_bytes((terminal.folder / "s1/results.json").read_bytes())
    said = merge(terminal, "s1", "s2")
    assert (said.code, "s2 holds both results.json and results.json.gz" in said.err) == (2, True)


def test_shards_may_be_merged_in_steps(terminal, shard):
    shard(1)
    shard(2)
    said = merge(terminal, "s2", output="half", partial=True)
    assert (said.code, said.out) == (0, "half: 1 shard, 1 passed, 0 failed; it is shard 2 of 2\n")
    assert "2 of 2 is there 2 times" in merge(terminal, "s1", "s2", "half").err
    merge(terminal, "s1", "half", output="tree")
    merge(terminal, "s1", "s2")
    assert (terminal.folder / "tree/results.json").read_bytes() == (
        terminal.folder / "merged/results.json"
    ).read_bytes()
    said = terminal.type("gate", "half", "--baseline", "base.json", "--update")
    assert (said.code, "only shard 2 of 2" in said.err) == (2, True)


def test_a_shard_of_which_lines_were_taken_out_is_refused(terminal, shard):
    shard(1)
    shard(2)
    merge(terminal, "s1", "s2", output="whole")
    whole = terminal.folder / "whole/results.json"
    lines = whole.read_text().replace(
        '"targets": {', '"shard": {"number": 1, "count": 1, "cases": 3, "of": 3, "digest": "d"}, "targets": {'
    )
    del (kept := lines.splitlines(keepends=True))[-3]
    whole.write_text("".join(kept))
    said = merge(terminal, "whole")
    assert (said.code, "whole says that 3 passed, and 2 of its cases did" in said.err) == (2, True)
    assert not (terminal.folder / "merged").exists()


def test_recordings_of_other_cases_are_refused_and_the_report_before_stays(terminal, shard):
    shard(1)
    shard(2)
    (terminal.folder / "s2/recordings.jsonl").write_bytes((terminal.folder / "s1/recordings.jsonl").read_bytes())
    said = merge(terminal, "s1", "s2")
    assert (said.code, "s2/recordings.jsonl has the case 'S1[control:oracle]' where" in said.err) == (2, True)
    assert not (terminal.folder / "merged/results.json").exists()


def test_more_cases_than_a_page_can_hold_are_merged_to_the_same_run(terminal, shard, monkeypatch):
    shard(1)
    shard(2)
    merge(terminal, "s1", "s2", output="small")
    with monkeypatch.context() as patch:
        patch.setattr("memstory.reporting.writing.MOST_CASES", 2)
        assert merge(terminal, "s1", "s2", output="large").out == "large: 2 shards, 3 passed, 0 failed\n"
    for name in ("results.json", "recordings.jsonl"):
        small, large = (terminal.folder / folder / name for folder in ("small", "large"))
        assert large.read_bytes() == small.read_bytes()
    assert (terminal.folder / "large/report-cases/00001.html").exists()
    # What a merge left there before goes, and nothing else does.
    (terminal.folder / "large/report-cases/mine.txt").touch()
    merge(terminal, "s1", "s2", output="large")
    assert [path.name for path in (terminal.folder / "large/report-cases").iterdir()] == ["mine.txt"]
