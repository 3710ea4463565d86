"""The gate, as it is typed, on memories that were broken and on memories that are the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from memstory.bundled import bundled_stories
from memstory.controls import MUTANTS, OracleFactory
from memstory.language.stories import load_stories
from memstory.playing import play
from memstory.results.folder.results_file import write_results
from memstory.results.merging import worst_of

GENERIC = [
    story for path in sorted((bundled_stories() / "generic").glob("*.yaml")) for story in load_stories(path, path.name)
]
RETURNS_SOMETHING_ELSE = [
    "dropping_last", "one_too_many", "repeating_hits", "short_of_top_k", "leaky_search", "leaking_behind", "leaky_list",
]  # fmt: skip
CHANGES_NAMES = [
    "prefix_owners", "folding_owners", "composing_owners", "trimming_owners", "counting_owners", "cutting_owners",
    "tidying_owners", "pattern_owners", "reserved_owners",
]  # fmt: skip
QUESTIONS = 60


@pytest.fixture
def played(tmp_path, run_of):
    """Return a function that runs the generic stories on a memory called 'mine' and keeps its results."""

    def run(factory, name):
        results = [asyncio.run(play(story, factory, tmp_path / "work", target="mine")) for story in GENERIC]
        return save(name, results)

    def save(name, cases):
        (tmp_path / name).mkdir()
        write_results(tmp_path / name / "results.json", run_of(cases))
        return name

    run.save = save
    return run


@pytest.fixture
def gate(terminal):
    return lambda *words: terminal.type("gate", *words, "--baseline", "base.json.gz")


def test_generic_stories_find_each_broken_adapter_and_let_the_same_memory_pass(played, gate):
    assert gate(*(played(OracleFactory(), f"base-{number}") for number in range(3)), "--update").code == 0
    assert gate(played(OracleFactory(), "same")).code == 0
    codes = {name: gate(played(MUTANTS[name](), name)).code for name in [*RETURNS_SOMETHING_ELSE, *CHANGES_NAMES]}
    assert codes == dict.fromkeys(codes, 1)


def steady(run, ranks):
    return [run.case(), run.retrieval(ranks, outcome="measured")]


def test_ten_of_ten_known_regressions_are_found_in_a_steady_memory(run, played, gate):
    ranks = [1] * 50 + [3] * 5 + [0] * 5
    runs = [played.save(f"base-{number}", steady(run, ranks)) for number in range(3)]
    assert gate(*runs, "--update").code == 0

    def ranked(**changed):
        return [changed.get(f"q{number}", rank) for number, rank in enumerate(ranks)]

    better = {f"q{number}": 1 for number in range(55, 60)}
    worse = {
        "one lost": steady(run, ranked(q7=0)),
        "one lost and five won": steady(run, ranked(q7=0, **better)),
        "the last hit lost": steady(run, [0 if rank == 3 else rank for rank in ranks]),
        "one a place later": steady(run, ranked(q7=2)),
        "one behind the fifth": steady(run, ranked(q50=6)),
        "one at the end": steady(run, ranked(q50=10)),
        "all a place later": steady(run, [rank + 1 if rank else 0 for rank in ranks]),
        "all lost": steady(run, [0] * QUESTIONS),
        "a story failed": [run.case(outcome="failed"), *steady(run, ranks)[1:]],
        "a story unsupported": [run.case(outcome="unsupported"), *steady(run, ranks)[1:]],
    }
    codes = {name: gate(played.save(name.replace(" ", "-"), cases)).code for name, cases in worse.items()}
    assert codes == dict.fromkeys(worse, 1)
    same = [gate(played.save(f"same-{number}", steady(run, ranks))).code for number in range(20)]
    assert same == [0] * 20


def noisy(run, seed, share=0.15):
    """Return a run of a memory that by chance does not find a share of what it should."""
    draw = Random(seed)  # noqa: S311  (noise, not a secret)
    return steady(run, [0 if draw.random() < share else draw.choice([1, 1, 1, 2]) for _ in range(QUESTIONS)])


def test_a_memory_that_varies_raises_no_alarm_in_twenty_runs_and_is_caught_when_it_loses_much(run, played, gate):
    said = gate(*(played.save(f"base-{seed}", noisy(run, seed)) for seed in range(3)), "--update")
    assert "mine: not the same in 3 runs: Q1[mine]" in said.out
    assert [gate(played.save(f"same-{seed}", noisy(run, seed))).code for seed in range(3, 23)] == [0] * 20
    found = [gate(played.save(f"worse-{seed}", noisy(run, seed, share=0.6))).code for seed in range(10)]
    assert found == [1] * 10


def test_of_a_steady_target_the_lost_question_is_named_beside_a_target_that_varies(run, played, gate):
    def cases(steady_ranks, varying_ranks):
        return [run.retrieval(steady_ranks, target="a"), run.retrieval(varying_ranks, target="b")]

    ranks = [1] * 20
    varying = [[0, *ranks[1:]], ranks, ranks]
    said = gate(*(played.save(f"base-{n}", cases(ranks, other)) for n, other in enumerate(varying)), "--update")
    assert said.out.splitlines()[:2] == [
        "a: the same in 3 runs, so that any later loss is a regression",
        "b: not the same in 3 runs: Q1[b]",
    ]
    lost = [*ranks[:-1], 0]
    said = gate(played.save("now", cases(lost, lost)))
    assert said.code == 1
    assert "regression: Q1[a]: lost q19" in said.out
    assert "note: Q1[b]: lost q19 (sign test: p = " in said.out
    assert "regression: Q1[b]" not in said.out


def test_one_run_is_no_new_baseline_of_a_memory_that_is_known_to_vary(run, played, gate):
    gate(*(played.save(f"base-{seed}", noisy(run, seed)) for seed in range(3)), "--update")
    kept = Path("base.json.gz").read_bytes()
    found = gate(played.save("one", noisy(run, 3)), "--update")
    assert (found.code, "name 3 runs or more after --update" in found.err) == (2, True), found.err
    assert Path("base.json.gz").read_bytes() == kept
    assert gate(*(played.save(f"new-{seed}", noisy(run, seed)) for seed in range(4, 7)), "--update").code == 0


def test_a_slow_end_that_grew_is_a_regression_where_it_is_asked_for(run, played, gate):
    quick, slow = (0.01,) * 25, (0.01,) * 20 + (0.05,) * 5
    assert gate(played.save("base", [run.case(seconds=quick)]), "--update").code == 0
    now = played.save("now", [run.case(seconds=slow)])
    assert gate(now).code == 0
    found = gate(now, "--slower", "2")
    assert (found.code, "mine: p95 of search 50.0 ms, was 10.0 ms (5.0 times)" in found.out) == (1, True), found.out
    assert gate(now, "--slower", "6").code == 0
    assert gate(played.save("few", [run.case(seconds=slow[-5:])]), "--slower", "2").code == 0
    assert gate(played.save("tiny", [run.case(seconds=(0.0101,) * 25)]), "--slower", "1.001").code == 0
    for odd in ("1", "nan", "inf", "twice"):
        assert f"argument --slower: '{odd}' is not a number above 1" in gate(now, "--slower", odd).err


def test_a_baseline_of_few_calls_cannot_say_what_became_slower(run, played, gate):
    gate(played.save("base", [run.case(seconds=(0.01,) * 5)]), "--update")
    found = gate(played.save("now", [run.case(seconds=(0.05,) * 25)]), "--slower", "2")
    assert (found.code, "no operation has 20 calls in the baseline" in found.out) == (2, True), found.out


def test_what_failed_in_one_of_the_runs_is_not_known_to_pass(run):
    runs = [run("one", run.case("S1", outcome)).run for outcome in ("passed", "failed", "passed")]
    joint = worst_of(runs)
    assert (joint.cases[0].outcome, dict(joint.steady), joint.summary["failed"]) == ("failed", {"mine": False}, 1)


@pytest.mark.parametrize("others", [("error", "passed"), ("unsupported", "invalid")])
def test_what_was_seen_in_one_of_the_runs_counts_before_what_kept_others_from_seeing_it(run, others):
    runs = [run("one", run.case("S1", outcome)).run for outcome in ("failed", *others)]
    assert worst_of(runs).cases[0].outcome == "failed"


def test_of_runs_that_failed_the_one_that_left_something_behind_counts(run):
    failed = run("one", run.case("S1", "failed")).run
    runs = [replace(failed, cases=[replace(failed.cases[0], leaked=leaked)]) for leaked in (False, True, False)]
    assert worst_of(runs).cases[0].leaked


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([{}, {}], "two runs do not tell whether a memory is steady: name one run, or three or more"),
        ([{}, {}, {"story": "S2"}], "S1[mine], S2[mine]: not in all of them"),
        ([{}, {}, {"digest": "4567"}], "S1: another text of the story: 0123 in run-0 and run-1, 4567 in run-2"),
    ],
)
def test_runs_that_are_no_baseline_together_are_refused(run, played, gate, runs, said):
    extra = run.case("S0")
    names = [played.save(f"run-{n}", [extra, run.case(**changed)]) for n, changed in enumerate(runs)]
    found = gate(*names, "--update")
    assert (found.code, said in found.err) == (2, True), found.err
    assert not Path("base.json.gz").exists()


def test_several_runs_are_for_update_and_a_baseline_that_is_not_there_is_told_how_to_make(run, played, gate):
    names = [played.save(f"run-{n}", [run.case()]) for n in range(3)]
    assert "3 runs are named, and one is compared with the baseline: several are for --update" in gate(*names).err
    found = gate(names[0])
    assert (found.code, "there is no baseline base.json.gz: 'memstory gate RESULTS" in found.err) == (2, True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"digest": "other"}, "another data of 'facts': data in the baseline, other in this run"),
        ({"k": 5}, "another k of 'facts': 10 in the baseline, 5 in this run"),
        ({"seed": 7}, "another seed: [0] in the baseline, [7] in this run"),
    ],
)
def test_each_cause_for_which_nothing_can_be_measured_is_one_line(run, played, gate, changed, said):
    def cases(seed=0, **fields):
        made = [run.retrieval([1], story=f"Q{n}", target=target, **fields) for n in range(20) for target in "abc"]
        return [with_seed(case, seed) for case in made]

    assert gate(played.save("base", cases()), "--update").code == 0
    found = gate(played.save("now", cases(**changed)))
    names = "Q0, Q1, Q2, Q3, Q4, Q5, Q6, Q7 and 12 more"
    assert found.code == 2
    assert found.out.splitlines()[:-1] == [f"could not be measured: {names}: {said}"]


def with_seed(case, seed):
    (trial,) = case.trials
    return replace(case, trials=(replace(trial, recording=replace(trial.recording, seed=seed)),))


def test_cases_that_break_for_one_reason_are_one_line_and_so_are_those_that_a_cut_run_lost(
    run, played, gate, run_of, tmp_path
):
    names = [f"S{number}" for number in range(20)]
    assert gate(played.save("base", [run.case(name) for name in names]), "--update").code == 0
    broken = [run.case(name, "error", reason="no server at port 5") for name in names]
    found = gate(played.save("broken", broken))
    listed = ", ".join(f"{name}[mine]" for name in names[:8])
    assert found.code == 2
    assert f"could not be measured: {listed} and 12 more: was judged, now error: no server at port 5\n" in found.out
    lost = [run.case(name, "error", reason="its process ended") for name in names[1:]]
    lost = [replace(case, trials=()) for case in lost]
    cases = [run.case("S0"), *lost]
    (tmp_path / "cut").mkdir()
    write_results(tmp_path / "cut/results.json", run_of(cases, complete=False))
    found = gate("cut")
    assert (found.code, found.out.count("could not be measured")) == (2, 2)  # one is the verdict
    assert "the run was cut short: 19 cases without a result (S1[mine], " in found.out
