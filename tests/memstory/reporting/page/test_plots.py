import pytest

from memstory.reporting.comparing.columns import columns_of
from memstory.reporting.comparing.latency import latencies
from memstory.reporting.page.drawing import BOTTOM, SHARES, TOP, Value, bars, lines, powers_around
from memstory.reporting.page.plots import plots


@pytest.fixture
def drawn(run):
    def draw(*cases):
        columns = columns_of([run("one", *cases)])
        return {plot.title: plot.plan for plot in plots(columns, latencies(columns))}

    return draw


def test_recall_over_k_has_a_line_for_each_target(run, drawn):
    found = drawn(run.retrieval([1, 3, 0]), run.retrieval([2, 2, 2], target="other"))
    plan = found["Q1: Title of Q1 – recall over k"]
    assert [one.marks[2].text for one in plan.series] == ["3: 0.667", "3: 1.000"]
    assert "Latency by operation" in found


def test_a_target_has_the_same_colour_in_every_plot(run, drawn):
    found = drawn(run.case(target="a"), run.retrieval([1], target="b"))
    assert [one.colour for one in found["Q1: Title of Q1 – recall over k"].series] == [1]


def test_a_gap_has_no_mark():
    assert len(lines(["a", "b"], {0: [Value(1.0), None]}, SHARES).series[0].marks) == 1


def test_an_interval_is_a_whisker_from_its_low_to_its_high_end():
    (mark,) = bars(["a"], {0: [Value(0.5, 0.25, 1.0)]}, SHARES).series[0].marks
    assert mark.whisker.endswith(f"{SHARES.y(0.25)}V{SHARES.y(1.0)}")
    assert SHARES.y(1.0) == TOP


def test_a_logarithmic_axis_has_whole_powers_of_ten():
    scale = powers_around([0.02, 5.0])
    assert [tick.text for tick in scale.ticks()] == ["0.01", "0.1", "1", "10"]
    assert (scale.y(0.001), scale.y(10)) == (BOTTOM, TOP)
