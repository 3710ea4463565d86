from dataclasses import replace

import pytest

from memstory.results.outcomes import HARMS, OUTCOMES, WORST_FIRST
from memstory.results.totals import with_totals


def test_a_case_of_several_trials_has_the_rate_and_the_trial_that_decided(make_case):
    trials = [make_case.trial("passed", 0), make_case.trial("failed", 1), make_case.trial("passed", 2)]
    case = with_totals(make_case(outcome="failed", trials=trials))
    assert case.shown == 1
    assert (case.rate.passed, case.rate.trials) == (2, 3)
    assert case.rate.pass_hat == (pytest.approx(2 / 3), pytest.approx(1 / 3), 0.0)
    assert not case.deciding.verdicts[0].passed


def test_trials_that_broke_count_in_no_rate(make_case):
    trials = [make_case.trial("passed", 0), make_case.trial("error", 1)]
    case = with_totals(make_case(outcome="error", trials=trials))
    assert (case.rate.passed, case.rate.trials) == (1, 1)


def test_every_outcome_and_harm_has_its_place_in_the_one_order(make_case):
    ends = [("failed", harm) for harm in HARMS] + [(one, None) for one in WORST_FIRST if one != "failed"]
    ranks = [make_case(outcome=outcome, harm=harm).severity for outcome, harm in ends]
    assert ranks == sorted(set(ranks))
    assert set(WORST_FIRST) == set(OUTCOMES)
    assert make_case(outcome="failed").severity == make_case(outcome="failed", harm="wrong").severity


def test_metrics_are_the_totals_and_their_mean_over_trials(make_case):
    case = make_case.retrieval()
    (trial,) = case.trials
    better = replace(trial, scores=tuple(replace(score, value=score.value / 2) for score in trial.scores))
    found = with_totals(replace(case, trials=(trial, better)))
    assert found.metrics["recall@5"] == 0.5625


def test_levels_are_kept_apart_and_the_first_gives_the_metrics(make_case):
    case = make_case.retrieval()
    (trial,) = case.trials
    easy = tuple(replace(score, level={"distractors": 0}) for score in trial.scores)
    hard = tuple(replace(score, level={"distractors": 200}, value=0.1) for score in trial.scores)
    found = with_totals(replace(case, trials=(replace(trial, scores=easy + hard),)))
    assert found.metrics["mrr"] == 0.75
    assert len(found.scores) == 24


def test_a_pass_that_checked_nothing_is_warned_of(make_case):
    trial = replace(make_case.trial(), verdicts=())
    assert "without a single check" in with_totals(make_case(trials=[trial])).warnings[0]


@pytest.mark.parametrize(
    ("outcome", "kinds", "harm"),
    [
        ("failed", ["no hits"], "loss"),
        ("failed", ["no hits", None], "leak"),
        ("failed", [None], "leak"),
        ("passed", [], "leak"),
    ],
)
def test_a_memory_that_returned_nothing_leaked_nothing(outcome, kinds, harm, make_case):
    trial = make_case.trial("failed")
    verdicts = [replace(trial.verdicts[0], kind=kind) for kind in kinds]
    case = with_totals(make_case(outcome=outcome, harm="leak", trials=[replace(trial, verdicts=verdicts)]))
    assert case.harm == harm
