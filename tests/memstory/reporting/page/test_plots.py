from dataclasses import replace

import pytest

from memstory.reporting.page.plots import (
    BOTTOM,
    MOST_GROUPS,
    MOST_SERIES,
    RIGHT,
    SHARES,
    TOP,
    Value,
    bars,
    lines,
    panels,
    plots,
    powers_around,
)
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.costs import latencies


@pytest.fixture
def drawn(run):
    def draw(*cases):
        columns = columns_of([run("one", *cases)])
        return {plot.title: plot.plans[0] for plot in plots(columns, latencies(columns))}

    return draw


def test_recall_over_k_has_a_line_for_each_target(run, drawn):
    found = drawn(run.retrieval([1, 3, 0]), run.retrieval([2, 2, 2], target="other"))
    plan = found["Q1: Title of Q1 – recall over k"]
    assert [one.marks[2].text for one in plan.series] == ["3: 0.667", "3: 1.000"]
    assert "Latency by operation" in found


def test_a_long_title_of_a_story_is_cut(run, drawn):
    found = drawn(replace(run.retrieval([1, 3, 0]), title="x" * 100_000))
    assert max(map(len, found)) < 400


def test_a_series_has_the_number_of_its_target(run, drawn):
    found = drawn(run.case(target="a"), run.retrieval([1], target="b"))
    assert [one.column for one in found["Q1: Title of Q1 – recall over k"].series] == [1]


def test_more_targets_than_colours_are_all_in_the_plots(run, drawn):
    cases = [run.retrieval([1], target=f"t{number}") for number in range(MOST_SERIES + 2)]
    assert len(drawn(*cases)["Latency by operation"].series) == MOST_SERIES + 2


def test_a_gap_has_no_mark():
    assert len(lines(["a", "b"], {0: [Value(1.0), None]}, SHARES).series[0].marks) == 1


def test_an_interval_is_a_whisker_from_its_low_to_its_high_end():
    (mark,) = bars(["a"], {0: [Value(0.5, 0.25, 1.0)]}, SHARES).series[0].marks
    assert mark.whisker.endswith(f"{SHARES.y(0.25)}V{SHARES.y(1.0)}")
    assert SHARES.y(1.0) == TOP


def test_a_logarithmic_axis_has_whole_powers_of_ten():
    scale = powers_around([0.02, 5.0])
    assert [tick.lines for tick in scale.ticks()] == [["0.01"], ["0.1"], ["1"], ["10"]]
    assert (scale.y(0.001), scale.y(10)) == (BOTTOM, TOP)


@pytest.mark.parametrize("count", [1, 5, 6, 14])
def test_more_kinds_than_a_phone_shows_are_drawn_in_several_drawings_of_the_same_scale(count):
    labels = [f"kind {number}" for number in range(count)]
    drawn = panels(labels, {0: [Value(0.5)] * count}, SHARES)
    assert [" ".join(label.lines) for plan in drawn for label in plan.labels] == labels
    assert max(len(plan.labels) for plan in drawn) <= MOST_GROUPS
    assert {mark.y for plan in drawn for mark in plan.series[0].marks} == {SHARES.y(0.5)}


def test_a_long_label_is_broken_into_lines_that_stay_in_its_room():
    labels = ["search (retrieval)", "one two three four five six seven eight", "a" * 60]
    for label in bars(labels, {0: [Value(0.5)] * 3}, SHARES).labels:
        assert 1 <= len(label.lines) <= 4
        assert max(map(len, label.lines)) * 6 <= RIGHT / len(labels)


def test_of_many_places_of_a_line_some_are_named():
    written = [label.lines for label in lines([str(n) for n in range(1, 101)], {0: [Value(0.5)] * 100}, SHARES).labels]
    assert written[:3] == [["1"], ["9"], ["17"]]
    assert len(lines(["0", "1,000", "10,000"], {0: [Value(0.5)] * 3}, SHARES).labels) == 3
