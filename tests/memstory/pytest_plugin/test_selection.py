"""Which cases a run does and in which order; and of several machines the parts together are the whole run."""

from __future__ import annotations

import json
import re
import tracemalloc
from argparse import ArgumentTypeError
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.cli import main
from memstory.language.stories import story_of
from memstory.pytest_plugin.items import StoryItem
from memstory.pytest_plugin.selection import part_of, places_in, times_of
from memstory.pytest_plugin.shards import CaseTimes, Deal, Shard, parse_shard, shard_of_job
from memstory.results.folder.results_file import ResultsFile, results_text, write_results
from memstory.results.outcomes import CaseResult, TrialResult
from memstory.results.recording import Recording
from memstory.results.runs import make_fingerprint, make_run

pytest_plugins = ["pytester"]

KEYS = st.lists(st.tuples(st.sampled_from(["retrieval", "steps"]), st.text(max_size=3)), max_size=40)


@given(KEYS, st.integers(1, 60))
def test_every_case_is_in_exactly_one_shard_and_shards_are_even(keys, count):
    parts = [places_in(Deal(Shard(number=number, count=count)), keys) for number in range(1, count + 1)]
    assert Counter(place for part in parts for place in part) == Counter(range(len(keys)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.sets(st.text(max_size=4), max_size=30), st.integers(1, 9), st.randoms())
def test_who_does_what_does_not_depend_on_the_order_of_collection(names, count, random):
    keys = [(name,) for name in names]
    shuffled = random.sample(keys, len(keys))
    shard = Shard(number=count, count=count)
    assert {keys[place] for place in places_in(Deal(shard), keys)} == {
        shuffled[place] for place in places_in(Deal(shard), shuffled)
    }
    assert part_of(Deal(shard), keys, 1) == part_of(Deal(shard), shuffled, 1)


def test_what_is_alike_is_spread_over_all_shards():
    keys = [(kind, str(number)) for kind in ("retrieval", "steps") for number in range(6)]
    for number in (1, 2, 3):
        own = [keys[place][0] for place in places_in(Deal(Shard(number=number, count=3)), keys)]
        assert Counter(own) == {"retrieval": 2, "steps": 2}


def test_another_selection_has_another_digest():
    deal = Deal(Shard(number=1, count=2))
    assert part_of(deal, [("a",), ("b",)], 1).digest != part_of(deal, [("a",), ("c",)], 1).digest


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", "1/2/3", "", " 1/2", "\u0661/\u0662"])
def test_what_is_no_shard_is_refused_with_an_example(text):
    with pytest.raises(ArgumentTypeError, match=r"is not a shard: say which of how many.*such as 2/5"):
        parse_shard(text)


@pytest.mark.parametrize(
    ("environ", "shard"),
    [
        ({"CI_NODE_INDEX": "4", "CI_NODE_TOTAL": "4"}, (4, 4)),
        ({"MEMSTORY_JOB_INDEX": "0", "MEMSTORY_JOB_TOTAL": "3"}, (1, 3)),
        ({"SLURM_ARRAY_TASK_ID": "10", "SLURM_ARRAY_TASK_COUNT": "5", "SLURM_ARRAY_TASK_MIN": "10"}, (1, 5)),
        ({"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "5", "SLURM_ARRAY_TASK_MIN": "1",
          "SLURM_ARRAY_TASK_STEP": "2"}, (5, 5)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "99", "AWS_BATCH_JOB_ARRAY_SIZE": "100"}, (100, 100)),
        ({"AWS_BATCH_JOB_ARRAY_INDEX": "99", "MEMSTORY_SHARDS": "100"}, (100, 100)),
        ({"JOB_COMPLETION_INDEX": "0", "MEMSTORY_SHARDS": "7"}, (1, 7)),
    ],
)  # fmt: skip
def test_a_job_of_an_array_knows_its_shard(environ, shard):
    assert shard_of_job(environ) == Shard(number=shard[0], count=shard[1])


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "this is no job of a matrix or an array: none of CI_NODE_INDEX"),
        ({"JOB_COMPLETION_INDEX": "3"}, "JOB_COMPLETION_INDEX is set, and MEMSTORY_SHARDS is not"),
        ({"CI_NODE_INDEX": "5", "CI_NODE_TOTAL": "4"}, "CI_NODE_INDEX=5 of CI_NODE_TOTAL=4 is no shard"),
        ({"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "4"}, "CI_NODE_INDEX=0 of CI_NODE_TOTAL=4 is no shard"),
        ({"CI_NODE_INDEX": "two", "CI_NODE_TOTAL": "4"}, "CI_NODE_INDEX=two"),
        ({"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "5", "SLURM_ARRAY_TASK_MIN": "1",
          "SLURM_ARRAY_TASK_STEP": "2"}, "SLURM_ARRAY_TASK_ID=4"),
    ],
)  # fmt: skip
def test_a_job_that_does_not_know_its_shard_is_told_what_to_set(environ, said):
    with pytest.raises(ArgumentTypeError, match=re.escape(said)):
        shard_of_job(environ)


def test_dealing_out_looks_at_each_item_a_few_times_however_many_there_are(project, monkeypatch):
    looks = Counter()
    plain = StoryItem.__hash__

    def counted(item):
        looks[size] += 1
        return plain(item)

    monkeypatch.setattr(StoryItem, "__hash__", counted)
    for size in (8, 64):
        project.story("---".join(STORIES.format(number, 1) for number in range(size)))
        project.run("--collect-only", "-q", "--shard", "1/2")
    assert 0 < looks[64] / 64 < 2 * looks[8] / 8, looks


TIMES = {"seconds", "embedding_seconds", "started"}

STORIES = """
story: A{0}
title: A fact is found
steps:
  - add: Elixir is my language
  - search: Elixir
    expect: {{hits: {{count: {1}}}}}
"""


@pytest.fixture
def parts(project):
    """Return a function that runs the project in parts, and one that reads a report."""
    text = "---".join(STORIES.format(number, 1 + number % 3 // 2) for number in range(7))
    project.story(text)
    project.story("story: W1\ntitle: t\nstepps: []\n", name="stories/wrong.yaml")

    def run(count, *arguments, folder="part"):
        go = project.run_apart if "-n" in arguments else project.run
        for number in range(1, count + 1):
            go("--shard", f"{number}/{count}", "--report", f"{folder}{number}", *arguments)
        return [str(project.path / f"{folder}{number}") for number in range(1, count + 1)]

    return run


def timeless(value):
    if isinstance(value, dict):
        return {name: timeless(inner) for name, inner in value.items() if name not in TIMES}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def document(project, folder):
    return json.loads((project.path / folder / "results.json").read_text())


@pytest.mark.parametrize("count", [1, 3, 11])
def test_merged_equals_unsharded_whatever_the_number_of_shards(project, parts, count):
    project.run("--report", "whole")
    folders = parts(count)
    assert main(["merge", *reversed(folders), "--output", str(project.path / "merged")]) == 0
    assert timeless(document(project, "merged")) == timeless(document(project, "whole"))
    recordings = [
        sorted(
            json.loads(line)["case"] for line in (project.path / folder / "recordings.jsonl").read_text().splitlines()
        )
        for folder in ("merged", "whole")
    ]
    assert recordings[0] == recordings[1]
    assert "Not everything passed" in (project.path / "merged/report.md").read_text()


def test_shards_of_stories_that_were_edited_between_them_are_not_merged(project, parts, capsys):
    (first, _) = parts(2)
    project.story("---".join(STORIES.format(number, 1) for number in range(7)))
    (_, second) = parts(2, folder="later")
    assert main(["merge", first, second, "--output", str(project.path / "merged")]) == 2
    assert "what was selected is 8 cases (" in capsys.readouterr().err


def test_a_shard_without_a_case_is_no_failure_and_has_a_report(project, parts):
    parts(11, "-k", "A0 or A1")
    result = project.run("--shard", "9/11", "--report", "nine", "-k", "A0 or A1")
    assert result.ret == 0
    assert "No story falls to this shard" in result.stdout.str()
    assert document(project, "nine")["fingerprint"]["shard"] | {"digest": ""} == {
        "number": 9, "count": 11, "cases": 0, "of": 2, "digest": "",
    }  # fmt: skip


@pytest.mark.slow  # rows of a file, below, are divided the same way
def test_workers_of_xdist_share_one_shard(project, parts):
    plain, spread = parts(2), parts(2, "-n", "2", folder="spread")
    for one, other in zip(plain, spread, strict=True):
        assert timeless(document(project, one)) == timeless(document(project, other))
    empty = project.run_apart("--shard", "9/11", "--report", "nine", "-k", "A0", "-n", "1")
    assert empty.ret == 0
    assert document(project, "nine")["cases"] == []


@pytest.mark.usefixtures("parts")
def test_other_tests_of_the_project_run_in_every_shard(project):
    project.pytester.makepyfile(test_it="def test_it(): pass")
    for number in (1, 2):
        result = project.run("--shard", f"{number}/2", "test_it.py", "stories")
        assert "test_it.py ." in result.stdout.str()


def test_the_report_of_a_shard_says_that_it_is_one(project, parts):
    parts(2)
    assert "**This is only shard 2 of 2**" in (project.path / "part2/report.md").read_text()


def test_a_wrong_shard_is_refused_before_anything_runs(project):
    result = project.run("--shard", "3/2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "'3/2' is not a shard: say which of how many, from 1/1 on, such as 2/5" in result.stderr.str()


def test_shards_fit_together_wherever_the_stories_lie_outside_of_the_project(project, tmp_path_factory):
    folders = []
    for number in (1, 2):
        place = tmp_path_factory.mktemp("installed") / "b.story.yaml"
        place.write_text("---".join(STORIES.format(story, 1) for story in range(5)), "utf-8")
        folders.append(str(project.path / f"part{number}"))
        here = ("-c", str(project.path / "tox.ini"), f"--rootdir={project.path}")
        project.run(str(place), *here, "--shard", f"{number}/2", "--report", folders[-1])
    assert main(["merge", *folders, "--output", str(project.path / "merged")]) == 0
    assert len(project.results("merged")) == 5


MEASURING = """
story: M1
title: A number
measure: true
retrieval: {corpus: c.jsonl, queries: q.jsonl}
---
story: Q1
title: A threshold
retrieval: {corpus: c.jsonl, queries: q.jsonl}
expect: {metrics: {recall@5: {ge: 0}}}
---
story: M2
title: A number in steps
measure: true
steps: [{add: tea}, {search: tea}]
"""


@pytest.fixture
def measuring(project):
    """A project whose first stories take numbers on a corpus, before others that are judged."""
    stories = project.path / "stories"
    (stories / "c.jsonl").write_text('{"id": "a", "text": "green tea"}\n')
    (stories / "q.jsonl").write_text('{"id": "q", "text": "tea", "relevant": ["a"]}\n')
    project.story(MEASURING)
    project.story(STORIES.format(1, 1), "stories/b.yaml")
    project.story("story: W1\ntitle: t\nstepps: []\n", "stories/c.yaml")
    return project


def test_what_is_judged_runs_first_and_corpora_that_measure_run_last(measuring):
    ran = [re.search(r"::(\w+)", line)[1] for line in measuring.run("-v").outlines if "%]" in line]
    assert ran == ["A1", "W1", "Q1", "M2", "M1"]


def test_the_report_does_not_depend_on_the_order(measuring):
    measuring.run("--report", "one")
    measuring.run("--report", "other", "stories/c.yaml", "stories/b.yaml", "stories/a.yaml")
    one, other = document(measuring, "one"), document(measuring, "other")
    assert timeless(one["cases"]) == timeless(other["cases"])
    assert timeless(one["summary"]) == timeless(other["summary"])


@pytest.mark.parametrize("words", [(), ("-n", "1")])
def test_quick_leaves_measurements_out_and_says_how_many(measuring, words):
    run = measuring.run_apart if words else measuring.run
    result = run("--quick", *words)
    assert measuring.results() == {"A1": "passed", "Q1": "passed", "W1": "invalid"}
    said = [line for line in result.outlines if line.startswith("--quick left out ")]
    assert said == ["--quick left out 2 cases, which only measure"]


def test_quick_says_nothing_where_nothing_measures(project):
    project.story(STORIES.format(1, 1))
    assert "--quick" not in project.run("--quick").stdout.str()


TABLE = """
story: T1
title: ${drink} is found
tags: [drinks]
parametrize: {file: rows.jsonl}
steps:
  - add: I like ${drink}
  - search: ${drink}
    expect: {hits: {count: 1}}
"""
COLLECT = ("--collect-only", "-q")


@pytest.fixture
def table(project):
    """A project with seven stories, and one whose ten rows are in a file."""
    project.story("---".join(STORIES.format(number, 1 + number % 3 // 2) for number in range(7)))
    project.story(TABLE, name="stories/t.yaml")
    write_rows(project, range(10))
    return project


def write_rows(project, numbers):
    lines = (json.dumps({"drink": f"tea {number}"}) + "\n" for number in numbers)
    (project.path / "stories/rows.jsonl").write_text("".join(lines), "utf-8")


def shards_of(project, count, *arguments, folder="part"):
    for number in range(1, count + 1):
        project.run("--shard", f"{number}/{count}", "--report", f"{folder}{number}", *arguments)
    return [str(project.path / f"{folder}{number}") for number in range(1, count + 1)]


def merge(project, *folders):
    return main(["merge", *folders, "--output", str(project.path / "merged")])


def cases(project, folder):
    return [case["id"] for case in document(project, folder)["cases"]]


@pytest.mark.parametrize("count", [1, 3, pytest.param(23, marks=pytest.mark.slow)])
@pytest.mark.parametrize("more", [(), ("--target", "control:oracle", "--target", "toy_target:ToyFactory")])
def test_merged_equals_unsharded_where_rows_are_in_a_file(table, count, more):
    table.run("--report", "whole", *more)
    folders = shards_of(table, count, *more)
    assert merge(table, *reversed(folders)) == 0
    assert timeless(document(table, "merged")) == timeless(document(table, "whole"))
    sizes = [len(cases(table, folder)) for folder in folders]
    assert max(sizes) - min(sizes) <= 1


def test_a_shard_makes_only_its_own_stories_of_a_file_of_rows(table, monkeypatch):
    made = []

    def noted(document, row, *rest):
        made.append(row.name)
        return story_of(document, row, *rest)

    monkeypatch.setattr("memstory.language.stories.story_of", noted)
    result = table.run("--shard", "2/5", *COLLECT, "stories/t.yaml")
    own = re.findall(r"T1\[toy_target:ToyFactory-(\w+)\]", result.stdout.str())
    # Beside its own the first, which tells what is wrong with all.
    assert len(own) == 2
    assert sorted(made) == sorted(["tea_0", *own])


@pytest.mark.parametrize(
    "words",
    [
        ("-k", "tea_1 or tea_3 or tea_5 or A1"),
        ("-m", "drinks"),
        ("--deselect", "stories/t.yaml::T1[toy_target:ToyFactory-tea_4]"),
    ],
)
def test_a_shard_of_what_was_selected_of_a_file_of_rows_is_a_part_of_that(table, words):
    table.run("--report", "whole", *words)
    folders = shards_of(table, 3, *words)
    assert merge(table, *folders) == 0
    assert cases(table, "merged") == cases(table, "whole")
    sizes = [len(cases(table, folder)) for folder in folders]
    assert max(sizes) - min(sizes) <= 1


def test_a_shard_of_named_cases_has_its_part_of_them(table):
    names = [f"stories/t.yaml::T1[toy_target:ToyFactory-tea_{number}]" for number in (1, 2, 8)]
    folders = shards_of(table, 2, *names)
    assert merge(table, *folders) == 0
    assert cases(table, "merged") == [f"T1[toy_target:ToyFactory-tea_{number}]" for number in (1, 2, 8)]


def test_cases_of_rows_that_a_conftest_deselects_are_not_shared_out_in_silence(table):
    (table.path / "conftest.py").write_text(
        "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if 'tea_1' not in one.name]\n"
    )
    outcomes = [table.run("--shard", f"{number}/2") for number in (1, 2)]
    (refused,) = [one for one in outcomes if one.ret == pytest.ExitCode.USAGE_ERROR]
    refused.stderr.fnmatch_lines(
        ["*a plugin or a conftest deselected 1 case whose rows are in a file*--deselect=none has all cases*"]
    )
    assert merge(table, *shards_of(table, 2, "--deselect=none")) == 0
    assert len(cases(table, "merged")) == 16


@pytest.mark.parametrize("change", ["a row more", "another row", "another order"])
def test_shards_of_another_file_of_rows_are_not_merged(table, capsys, change):
    first = shards_of(table, 2)[0]
    write_rows(
        table, {"a row more": range(11), "another row": [*range(9), 99], "another order": range(9, -1, -1)}[change]
    )
    assert merge(table, first, shards_of(table, 2, folder="later")[1]) == 2
    assert "what was selected is 17 cases (" in capsys.readouterr().err


def test_a_shard_that_got_lost_is_named_and_can_be_run_again_alone(table, capsys):
    first, lost, last = shards_of(table, 3)
    before = timeless(document(table, lost))
    assert merge(table, first, last) == 2
    assert "shard 2 of 3 is missing" in capsys.readouterr().err
    table.run("--shard", "2/3", "--report", "again")
    assert timeless(document(table, "again")) == before
    assert merge(table, first, str(table.path / "again"), last) == 0
    assert len(cases(table, "merged")) == 17


def test_a_bad_line_is_an_error_in_every_shard_that_reads_the_file(table):
    with (table.path / "stories/rows.jsonl").open("a") as rows:
        rows.write("[1]\n")
    folders = shards_of(table, 2)
    assert merge(table, *folders) == 0
    (invalid,) = [case for case in document(table, "merged")["cases"] if case["outcome"] == "invalid"]
    assert "rows.jsonl:11: allowed is a JSON object" in invalid["reason"]
    result = table.run("--shard", "1/2", *COLLECT)
    assert (
        "rows.jsonl:11" in result.stdout.str() or "rows.jsonl:11" in table.run("--shard", "2/2", *COLLECT).stdout.str()
    )


def test_a_row_that_makes_no_story_is_invalid_in_one_shard_and_costs_no_other_row(table):
    with (table.path / "stories/rows.jsonl").open("a") as rows:
        rows.write('{"drunk": "tea"}\n')
    more = ("--target", "control:oracle", "--target", "toy_target:ToyFactory")
    table.run("--report", "whole", *more)
    assert merge(table, *shards_of(table, 4, *more)) == 0
    assert timeless(document(table, "merged")["cases"]) == timeless(document(table, "whole")["cases"])
    assert [case["id"] for case in document(table, "merged")["cases"] if case["outcome"] == "invalid"] == [
        "stories/t.yaml::T1[tea]"
    ]


def test_workers_of_xdist_share_one_shard_of_a_file_of_rows(table):
    table.run("--shard", "2/3", "--report", "plain")
    table.run_apart("--shard", "2/3", "--report", "spread", "-n", "2")
    assert timeless(document(table, "plain")) == timeless(document(table, "spread"))


def test_quick_leaves_a_file_of_rows_that_measures_out_of_every_shard(table):
    table.story(
        TABLE.replace("steps:", "measure: true\nsteps:").replace("    expect: {hits: {count: 1}}\n", ""),
        "stories/t.yaml",
    )
    folders = shards_of(table, 2, "--quick")
    assert merge(table, *folders) == 0
    assert len(cases(table, "merged")) == 7
    assert "--quick left out 10 cases, which only measure" in table.run("--shard", "1/2", "--quick").outlines


SECONDS = st.lists(st.floats(0, 100), min_size=1, max_size=40)


@given(SECONDS, st.integers(1, 9))
def test_shards_by_time_have_each_case_once_and_differ_by_at_most_the_longest(seconds, count):
    known = {f"c{place}": taken for place, taken in enumerate(seconds)}
    times = CaseTimes(name="r", seconds=known, usual=1.0)
    names = [*known]
    parts = [Deal(Shard(number=n, count=count), times).own_places(len(names), names) for n in range(1, count + 1)]
    assert Counter(place for part in parts for place in part) == Counter(range(len(names)))
    loads = [sum(max(seconds[place], 0.001) for place in part) for part in parts]
    assert max(loads) - min(loads) <= max(*seconds, 0.001) + 1e-6


def test_a_case_without_a_time_counts_for_the_median_and_what_took_none_is_spread_too():
    times = CaseTimes(name="r", seconds={"a": 9.0, "b": 2.0, "c": 1.0}, usual=2.0)
    names = ["c", "a", "new", "b"]
    parts = [Deal(Shard(number=n, count=2), times).own_places(4, names) for n in (1, 2)]
    assert [[names[place] for place in part] for part in parts] == [["a"], ["new", "b", "c"]]
    at_once = CaseTimes(name="r", seconds=dict.fromkeys("abcd", 0.0), usual=0.0)
    assert len(Deal(Shard(number=1, count=2), at_once).own_places(4, "abcd")) == 2


def with_seconds(project, folder, seconds):
    """Rewrite how long the cases of a run took."""
    path = project.path / folder / "results.json"
    run = json.loads(path.read_text("utf-8"))
    for case in run["cases"]:
        case["seconds"] = seconds.get(case["id"], 1.0)
    path.write_text(json.dumps(run), "utf-8")


def test_shards_are_balanced_by_the_times_of_an_earlier_run(table):
    table.run("--report", "whole")
    with_seconds(table, "whole", {"T1[toy_target:ToyFactory-tea_3]": 30.0, "A2[toy_target:ToyFactory]": 12.0})
    folders = shards_of(table, 3, "--shard-by", "whole")
    parts = [cases(table, folder) for folder in folders]
    assert ["T1[toy_target:ToyFactory-tea_3]"] in parts
    assert min(len(part) for part in parts if "A2[toy_target:ToyFactory]" in part) < max(map(len, parts))
    assert merge(table, *folders) == 0
    assert cases(table, "merged") == cases(table, "whole")


def test_shards_by_other_times_are_not_merged(table, capsys):
    table.run("--report", "whole")
    first = shards_of(table, 2, "--shard-by", "whole/results.json")[0]
    with_seconds(table, "whole", {})
    later = shards_of(table, 2, "--shard-by", "whole", folder="later")[1]
    assert merge(table, first, later) == 2
    assert merge(table, first, shards_of(table, 2, folder="plain")[1]) == 2
    assert "what was selected" in capsys.readouterr().err


def test_of_a_run_that_gives_times_only_these_are_kept_at_a_time(tmp_path):
    (tmp_path / "one").mkdir()
    trial = TrialResult(
        outcome="failed", reason="r" * 9_000, verdicts=(), scores=(), recording=Recording(story="S", target="t")
    )
    cases = [
        CaseResult(
            id=f"S[t-{number}]", story="S", row=str(number), title="S", target="t", where="a.yaml:1:1", digest="d",
            outcome="failed", reason=None, trials=(trial,), seconds=float(number),
        )
        for number in range(400)
    ]  # fmt: skip
    path = tmp_path / "one/results.json"
    write_results(path, make_run(cases, make_fingerprint(cases)))
    size = path.stat().st_size
    tracemalloc.start()
    times = times_of("one", ResultsFile(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert times.seconds == {case.id: case.seconds for case in cases}
    assert peak < size / 8, (peak, size)


def test_the_summary_says_how_many_cases_had_a_time(table):
    table.run("--report", "whole", "-k", "T1")
    result = table.run("--shard", "1/2", "--shard-by", "whole")
    assert "--shard-by whole: 10 of 17 cases have a time there, the others count for the median" in result.outlines


SELECTIONS = [
    ("-k", "tea_1 or tea_3 or tea_5 or tea_7"),
    ("-k", "not tea_2 and t.yaml"),
    ("-k", "drinks and TEA"),
    ("-k", "control:oracle"),
    ("-k", "story and not toy_target"),
    ("-m", "drinks"),
    ("-m", "drinks and not story"),
    ("-m", "story", "-k", "tea_8"),
]
TWO_TARGETS = ("--target", "control:oracle", "--target", "toy_target:ToyFactory")


@pytest.mark.parametrize("words", SELECTIONS)
def test_a_shard_of_selected_rows_makes_items_of_its_own_alone(table, monkeypatch, words):
    made = []
    plain = StoryItem.prepare

    def noted(item, case, state):
        made.append(case.id)
        plain(item, case, state)

    monkeypatch.setattr(StoryItem, "prepare", noted)
    collected = []
    for number in range(1, 4):
        made.clear()
        result = table.run("--shard", f"{number}/3", *COLLECT, "stories/t.yaml", *words, *TWO_TARGETS)
        own = re.findall(r"::(T1\[\S+\])", result.stdout.str())
        # Beside its own the first, of which pytest's own words say what they select.
        assert len(made) <= len(own) + 1
        collected += own
    table.run("--report", "whole", "stories/t.yaml", *words, *TWO_TARGETS)
    wanted = cases(table, "whole") if (table.path / "whole").exists() else []
    assert sorted(collected) == sorted(wanted)


@pytest.mark.parametrize("words", SELECTIONS)
def test_merged_equals_unsharded_where_rows_of_a_file_are_selected(table, words):
    with (table.path / "stories/rows.jsonl").open("a") as rows:
        rows.write('{"drunk": "tea"}\n{"drink": "tea 1"}\n')
    table.run("--report", "whole", *words, *TWO_TARGETS)
    wanted = cases(table, "whole") if (table.path / "whole").exists() else []
    folders = shards_of(table, 3, *words, *TWO_TARGETS)
    assert merge(table, *folders) == 0
    assert cases(table, "merged") == wanted


def test_shards_of_other_selections_of_as_many_rows_are_not_merged(table, capsys):
    first = shards_of(table, 2, "-k", "tea_1 or tea_2")[0]
    later = shards_of(table, 2, "-k", "tea_1 or tea_3", folder="later")[1]
    assert merge(table, first, later) == 2
    assert "what was selected is 2 cases (" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("-k", "tea_1 and"), ("-m", "(")])
def test_a_wrong_selection_is_told_by_pytest_for_a_shard_too(table, words):
    result = table.run("--shard", "1/2", *words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"Wrong expression passed to '{words[0]}'" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--shard", "1/2", "--shard-by", "nowhere"), "--shard-by: no file or folder *nowhere*"),
        (("--shard", "1/2", "--shard-by", "tox.ini"), "--shard-by: *tox.ini*"),
        (("--shard", "1/2", "--shard-by", "cut"), "--shard-by: *is not JSON: it is cut off behind case 0*"),
        (("--shard", "1/2", "--shard-by", "older"), "--shard-by: *has the schema 'memstory.results/1' (an older mem*"),
        (("--shard-by", "whole"), "*add --shard 2/5*"),
    ],
)
def test_a_run_that_gives_no_times_is_one_message(project, words, part):
    project.story()
    (project.path / "cut").mkdir()
    (project.path / "cut/results.json").write_text(
        results_text(make_run([], make_fingerprint([]))).removesuffix("]}\n")
    )
    (project.path / "older").mkdir()
    (project.path / "older/results.json").write_text('{"schema": "memstory.results/1", "cases": []}')
    result = project.run(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {part}"])
    assert "Traceback" not in result.stderr.str()


MISSING = """
story: X1
title: A fact is found that was never told
steps: [{add: tea}, {search: tea, expect: {hits: {count: 1}}}, {search: coffee, expect: {hits: {count: 5}}}]
"""


def test_measure_says_what_held_and_lets_nothing_pass_or_fail(project):
    project.story(MISSING)
    assert project.run("--measure").ret == 0
    assert project.results() == {"X1": "measured"}
    (case,) = document(project, "reports/latest")["cases"]
    assert case["reason"] == "1 of 2 expectations held"


def test_measure_leaves_what_broke_an_error(project):
    project.story(MISSING)
    assert project.run("--measure", "--target", "toy_target:Broken").ret == 1
    assert project.results()["X1"] == "error"
