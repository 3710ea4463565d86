from dataclasses import replace

import pytest

from memstory.language.matchers.means import scores_of
from memstory.reporting.gate import gate
from memstory.results.totals import with_totals


def test_the_same_run_passes_without_a_word(run):
    same = run("one", run.case(), run.retrieval([1, 0]))
    found = gate(same, same)
    assert (found.code, found.judged) == (0, 2)
    assert found.regressions + found.unmeasured + found.improvements + found.notes == []


@pytest.mark.parametrize(
    ("before", "after", "code", "kind"),
    [
        ("passed", "failed", 1, "regressions"),
        ("passed", "unsupported", 1, "regressions"),
        ("passed", "error", 2, "unmeasured"),
        ("failed", "error", 2, "unmeasured"),
        ("passed", "invalid", 2, "unmeasured"),
        ("failed", "passed", 0, "improvements"),
        ("error", "passed", 0, "improvements"),
        ("unsupported", "failed", 0, "notes"),
        ("failed", "unsupported", 0, "notes"),
    ],
)
def test_each_change_of_an_outcome_has_its_weight(run, before, after, code, kind):
    found = gate(run("old", run.case("S0"), run.case("S1", before)), run("new", run.case("S0"), run.case("S1", after)))
    assert found.code == code
    (line,) = getattr(found, kind)
    assert line.startswith("S1[mine]: ")
    assert after in line or "now passes" in line


@pytest.mark.parametrize("outcome", ["failed", "unsupported", "error"])
def test_what_was_known_to_be_wrong_may_stay_so(run, outcome):
    cases = run.case("S0"), run.case("S1", outcome)
    assert gate(run("old", *cases), run("new", *cases)).code == 0


def test_a_metric_beyond_its_interval_is_a_regression_although_the_story_passes(run):
    found = gate(run("old", run.retrieval([1] * 20)), run("new", run.retrieval([1] * 8 + [0] * 12)))
    assert found.code == 1
    assert any("Q1[mine]: recall@10 -0.600 over 20 questions (95% interval" in line for line in found.regressions)


def test_a_metric_within_its_interval_is_a_note(run):
    found = gate(run("old", run.retrieval([1] * 20)), run("new", run.retrieval([1] * 19 + [0])))
    assert found.code == 0
    named, *scores = found.notes
    assert named == "Q1[mine]: lost q19 (sign test: p = 0.500)"
    assert scores
    assert all("within chance" in line for line in scores)


def test_a_metric_that_rose_is_an_improvement(run):
    found = gate(run("old", run.retrieval([0] * 20)), run("new", run.retrieval([1] * 20)))
    assert (found.code, bool(found.improvements)) == (0, True)


def test_a_case_that_was_not_run_cannot_be_measured(run):
    found = gate(run("old", run.case("S1"), run.case("S2")), run("new", run.case("S1")))
    assert (found.code, found.unmeasured) == (2, ["S2[mine]: in the baseline, and was not run"])


def test_another_story_is_not_judged_as_if_it_were_the_same(run):
    found = gate(
        run("old", run.case("S0"), run.case()), run("new", run.case("S0"), run.case(outcome="failed", digest="4567"))
    )
    assert (found.code, found.regressions, found.judged) == (2, [], 1)
    assert found.unmeasured == ["S1: another text of the story: 0123 in old, 4567 in new"]


def test_a_regression_counts_whatever_else_could_not_be_measured(run):
    old = run("old", run.case("S1"), run.case("S2"))
    assert gate(old, run("new", run.case("S1", "failed"), run.case("S2", "error"))).code == 1


def test_a_run_that_was_cut_cannot_be_measured(run):
    found = gate(run("old", run.case()), run("new", run.case(), complete=False))
    assert (found.code, found.unmeasured) == (2, ["the run was cut short"])


def test_too_few_cases_cannot_decide(run):
    same = run("one", run.case())
    found = gate(same, same, least_cases=2)
    assert (found.code, found.unmeasured) == (2, ["too few cases were judged in both runs: 1, wanted are 2"])
    nothing = run("one", run.case(outcome="unsupported"))
    assert gate(nothing, nothing).code == 2


def test_a_new_story_is_noted_and_not_judged(run):
    found = gate(run("old", run.case("S1")), run("new", run.case("S1"), run.case("S2", "failed")))
    assert (found.code, found.notes) == (
        0,
        ["the baseline is narrower than the run: it lacks 1 of 2 cases, of which 1 failed: S2[mine]"],
    )


def test_of_what_is_only_measured_the_metrics_count_and_not_the_outcome(run):
    def measured(name, ranks):
        return run(name, run.case("S0"), run.retrieval(ranks, outcome="measured"))

    old = measured("old", [1] * 20)
    assert gate(old, measured("new", [1] * 20)).code == 0
    worse = gate(old, measured("new", [1] * 8 + [0] * 12))
    assert (worse.code, worse.judged) == (1, 1)
    assert any("recall@10 -0.600" in line for line in worse.regressions)
    assert gate(old, run("new", run.case("S0"))).unmeasured == ["Q1[mine]: in the baseline, and was not run"]
    assert gate(old, run("new", run.case("S0"), run.case("Q1", "error"))).code == 2


def test_a_metric_that_is_better_when_it_is_lower_is_a_regression_when_it_rises(run):
    def stale(name, first):
        case = run.retrieval([(2, None)] * 20)
        (record,) = case.retrieval
        asked = [
            replace(one, stale=("old",), retrieved=("old", "right") if number < first else ("right", "old"))
            for number, one in enumerate(record.questions)
        ]
        record = replace(record, questions=tuple(asked))
        (trial,) = case.trials
        recording = replace(trial.recording, retrieval=(record,))
        trial = replace(trial, recording=recording, scores=scores_of(record))
        return run(name, with_totals(replace(case, trials=(trial,))))

    found = gate(stale("old", 2), stale("new", 16))
    assert [line for line in found.regressions if "stale_share +0.700" in line]
    assert [line for line in gate(stale("old", 16), stale("new", 2)).improvements if "stale_share -0.700" in line]


def test_questions_that_were_lost_and_won_are_named(run):
    found = gate(run("old", run.retrieval([1] * 19 + [0])), run("new", run.retrieval([0] + [1] * 19)))
    assert [line for line in found.notes if "sign test" in line] == [
        "Q1[mine]: lost q0 (sign test: p = 0.750)",
        "Q1[mine]: won q19 (sign test: p = 0.750)",
    ]
    assert found.code == 0


@pytest.mark.parametrize(("lost", "code"), [(4, 0), (5, 1)])
def test_losses_without_wins_are_a_regression_once_they_are_no_chance(run, lost, code):
    found = gate(run("old", run.retrieval([1] * 500)), run("new", run.retrieval([0] * lost + [1] * (500 - lost))))
    named = f"Q1[mine]: lost {', '.join(f'q{number}' for number in range(lost))}"
    assert [line.startswith(named) for line in [*found.regressions, *found.notes] if "sign test" in line] == [True]
    assert any("sign test" in line for line in found.regressions) == bool(code)
