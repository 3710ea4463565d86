import doctest
from math import inf

import pytest

from memstory.scoring import metrics
from memstory.scoring.metrics import balanced_accuracy, best_threshold, threshold_accuracy


def test_doctests_hold():
    assert doctest.testmod(metrics).failed == 0


def test_the_threshold_of_one_half_judges_the_other_both_ways():
    # First half: answerable .9 .5, unanswerable .55 .1; the lowest best threshold is .3, between .1 and .5 (both
    # answered, one of two silent). On the second half .8 is answered and .2 is not, .4 and .3 are not silent: .25.
    # Second half: .6, between .4 and .8 (one of two answered, both silent). On the first half .9 is answered and .5 is
    # not, .55 and .1 are silent: .75.
    answerable, unanswerable = [0.9, 0.8, 0.5, 0.2], [0.55, 0.4, 0.1, 0.3]
    assert best_threshold(answerable[::2], unanswerable[::2]) == pytest.approx(0.3)
    assert best_threshold(answerable[1::2], unanswerable[1::2]) == pytest.approx(0.6)
    assert threshold_accuracy(answerable, unanswerable) == pytest.approx((0.25 + 0.75) / 2)


def test_a_question_for_which_nothing_came_back_is_silent_at_every_threshold():
    assert balanced_accuracy([0.1], [-inf], -1e9) == 1
    assert threshold_accuracy([0.4, 0.2], [-inf, -inf]) == 1


def test_scores_that_tell_nothing_are_worth_one_half():
    assert threshold_accuracy([1.0] * 6, [1.0] * 4) == 0.5


@pytest.mark.parametrize(("answerable", "unanswerable"), [([0.5], [0.1, 0.2]), ([0.5, 0.6], [0.1]), ([], [])])
def test_fewer_than_two_questions_of_a_kind_cannot_be_halved(answerable, unanswerable):
    assert threshold_accuracy(answerable, unanswerable) is None
