"""Cases with several trials: their rate, and what is flaky."""

import pytest

from memstory.reporting.markdown import as_markdown
from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import run_document
from memstory.results.outcomes import Rate


@pytest.fixture
def case(make_case):
    def make(*outcomes, outcome="passed", story="S5"):
        trials = [make_case.trial(outcome=one, number=number) for number, one in enumerate(outcomes)]
        return make_case(story, outcome=outcome, trials=trials)

    return make


def test_the_rate_has_an_interval_and_the_chances_of_one_and_of_all(case, run_of):
    (made,) = run_of([case("passed", "passed", "failed", "passed")]).cases
    assert made.rate == Rate(
        passed=3,
        trials=4,
        low=0.300642,
        high=0.954413,
        flaky=True,
        pass_at=(0.75, 1.0, 1.0, 1.0),
        pass_hat=(0.75, 0.5, 0.25, 0.0),
    )


def test_a_flaky_case_that_passed_is_called_flaky_in_both_reports(case, run_of):
    results = [case("passed", "failed")]
    (row,) = [
        line
        for line in as_markdown(run_document(run_of(results))).splitlines()
        if line.startswith("| S5\\[topics\\] | ✅")
    ]
    assert "✅ passed, **flaky** | 1 of 2 | 0.50 |" in row
    assert "flaky: S5[topics] passed 1 of 2 trials (95% interval 0.09 to 0.91, pass^2 0.00)" in terminal_summary(
        run_of(results)
    )


def test_trials_that_agree_are_not_flaky(case, run_of):
    results = [case("passed", "passed"), case("failed", "failed", outcome="failed", story="S6")]
    assert "flaky" not in terminal_summary(run_of(results))
    assert "**flaky**" not in as_markdown(run_document(run_of(results)))
    assert [made.rate.flaky for made in run_of(results).cases] == [False, False]


def test_a_trial_that_broke_counts_neither_way(case, run_of):
    (made,) = run_of([case("passed", "error")]).cases
    assert (made.rate.passed, made.rate.trials, made.rate.flaky) == (1, 1, False)


def test_a_single_trial_has_no_section(case, run_of):
    assert "Repeated trials" not in as_markdown(run_document(run_of([case("passed")])))
