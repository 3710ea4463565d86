import doctest
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.scoring import statistics
from memstory.scoring.statistics import (
    Sample,
    cluster_bootstrap,
    paired_bootstrap,
    pass_at_k,
    pass_hat_k,
    stratified_mean,
    wilson_interval,
)


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
    assert paired_bootstrap(before, [value + 0.2 for value in before], seed=3).low > 0
    noise = [0.1, -0.1] * 50
    shifted = [value + change for value, change in zip(before, noise, strict=True)]
    found = paired_bootstrap(before, shifted, seed=3)
    assert found.low <= 0 <= found.high


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


def sample(values, clusters, strata=None):
    return Sample(values=values, clusters=clusters, strata=strata or [""] * len(values))


def test_strata_weigh_the_same_however_large_they_are():
    assert stratified_mean(sample([1, 1, 0, 0, 0, 1], "abcdef", "xxxyyz")) == pytest.approx((2 / 3 + 0 + 1) / 3)


def test_whole_clusters_are_drawn():
    # Two clusters, one all right and one all wrong: a resample is 0, .5 or 1 with chances 1/4, 1/2 and 1/4.
    values, clusters = [1.0] * 10 + [0.0] * 10, ["a"] * 10 + ["b"] * 10
    together = cluster_bootstrap(sample(values, clusters), seed=3)
    assert (together.value, together.low, together.high) == (0.5, 0.0, 1.0)
    alone = cluster_bootstrap(sample(values, [str(number) for number in range(20)]), seed=3)
    assert 0.2 < alone.low < alone.high < 0.8


def test_a_cluster_of_unlike_size_weighs_by_its_questions():
    # Drawn are aa (0), ab or ba (1 of 4 values wrong would be 3/4), bb (1).
    interval = cluster_bootstrap(sample([0.0, 1.0, 1.0, 1.0], "abbb"), seed=1)
    assert (interval.value, interval.low, interval.high) == (0.75, 0.0, 1.0)
    assert cluster_bootstrap(sample([0.0, 1.0, 1.0, 1.0], "abbb"), seed=1, confidence=0.4).low == 0.75


def test_a_stratum_that_no_drawn_cluster_has_is_left_out_of_that_mean():
    interval = cluster_bootstrap(sample([0.0, 1.0], "ab", "xy"), seed=1)
    assert (interval.value, interval.low, interval.high) == (0.5, 0.0, 1.0)


def test_a_paired_difference_of_clusters_is_wider_than_one_of_questions():
    before, after = [0.0] * 40, [1.0] * 10 + [0.0] * 30
    clusters = [str(number // 10) for number in range(40)]
    together, alone = (paired_bootstrap(before, after, seed=2, clusters=c) for c in (clusters, None))
    assert together.value == alone.value == 0.25
    assert together.high - together.low > alone.high - alone.low
