import doctest
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.scoring import statistics
from memstory.scoring.statistics import paired_bootstrap, pass_at_k, pass_hat_k, wilson_interval


def test_doctests_hold():
    assert doctest.testmod(statistics).failed == 0


def test_wilson_equals_the_published_example():
    # Newcombe, Statistics in Medicine 1998, table I: 81 of 263 gives .2553 to .3662.
    interval = wilson_interval(81, 263)
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2553, 0.3662)


@given(trials=st.integers(1, 500), data=st.data())
def test_wilson_holds_the_rate_and_stays_in_range(trials, data):
    successes = data.draw(st.integers(0, trials))
    interval = wilson_interval(successes, trials)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.low < interval.high


def test_more_trials_narrow_the_interval():
    few, many = wilson_interval(8, 10), wilson_interval(800, 1000)
    assert many.high - many.low < few.high - few.low


def test_a_clear_difference_excludes_zero_and_noise_does_not():
    before = [0.0, 0.1, 0.2, 0.3] * 25
    assert paired_bootstrap(before, [value + 0.2 for value in before], seed=3).excludes(0)
    noise = [0.1, -0.1] * 50
    shifted = [value + change for value, change in zip(before, noise, strict=True)]
    assert not paired_bootstrap(before, shifted, seed=3).excludes(0)


def test_the_bootstrap_repeats_itself_for_a_seed_and_not_for_another():
    before, after = [0.0] * 40, [float(number % 7) for number in range(40)]
    assert paired_bootstrap(before, after, seed=5) == paired_bootstrap(before, after, seed=5)
    assert paired_bootstrap(before, after, seed=5) != paired_bootstrap(before, after, seed=6)


def test_unpaired_values_are_refused():
    with pytest.raises(ValueError, match="pairs"):
        paired_bootstrap([1.0], [1.0, 2.0], seed=0)


@given(trials=st.integers(1, 7), data=st.data())
def test_pass_rates_equal_counting_every_choice_of_k_trials(trials, data):
    successes, k = data.draw(st.integers(0, trials)), data.draw(st.integers(1, trials))
    outcomes = [number < successes for number in range(trials)]
    choices = list(combinations(outcomes, k))
    assert pass_at_k(successes, trials, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(successes, trials, k) == pytest.approx(sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize(("successes", "trials", "k"), [(3, 2, 1), (-1, 2, 1), (0, 0, 1), (1, 2, 3), (1, 2, 0)])
def test_impossible_counts_are_refused(successes, trials, k):
    with pytest.raises(ValueError, match=r"impossible|allowed"):
        pass_hat_k(successes, trials, k)
