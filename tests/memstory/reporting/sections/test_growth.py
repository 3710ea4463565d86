from dataclasses import replace

from memstory.reporting.page.plots import plots
from memstory.reporting.sections.columns import columns_of
from memstory.reporting.sections.comparison import compare, comparison_sections, comparison_tables
from memstory.reporting.sections.costs import growth_points
from memstory.reporting.terminal import as_text

SLOW = "not within 30 s: to remember 10000 documents would take about 400 s here"


def grown(run, size, *, target="mine", seconds=2.0, embedding=None, found=(1, 2, 0, 1)):
    case = run.retrieval(
        found, story=f"GROWTH[{size}]", target=target, outcome="measured", documents=size, tags=("growth",)
    )
    (trial,) = case.trials
    (record,) = trial.recording.retrieval
    record = replace(record, seconds=seconds, embedding_seconds=embedding)
    return replace(case, trials=[replace(trial, recording=replace(trial.recording, retrieval=(record,)))])


def both(run):
    slow = run.case("GROWTH[10000]", "unsupported", target="slow", tags=("growth",), reason=SLOW)
    cases = [grown(run, 1000), grown(run, 10_000, embedding=1.0), grown(run, 1000, target="slow"), slow]
    return [run("one", *cases)]


def test_added_memories_and_searches_cost_what_is_left_without_the_embedder(run):
    small, large, *_ = growth_points(columns_of(both(run)))
    assert (small.memories, small.add_ms, small.found) == (1000, 2.0, 0.75)
    assert (large.memories, large.add_ms, large.search.p50_ms) == (10_000, 0.1, 10.0)


def test_a_size_that_was_not_reached_in_time_says_so_and_has_no_times(run):
    (section,) = [one for one in comparison_sections(compare(both(run))) if one.title == "Growth"]
    table = section.parts[1]
    assert table.header == [
        "column", "add 1,000", "add 10,000", "search 1,000", "search 10,000", "found 1,000", "found 10,000",
    ]  # fmt: skip
    assert table.rows == [
        ["mine", "2.00", "0.10", "10.00 / 10.00", "10.00 / 10.00", "0.75", "0.75"],
        ["slow", "2.00", "not within 30 s", "10.00 / 10.00", "-", "0.75", "-"],
    ]


def test_a_comparison_without_sizes_has_no_growth(run):
    assert "Growth" not in as_text(comparison_tables(compare([run("one", run.retrieval([1]))])))


def test_growth_is_drawn_over_memories_in_place_of_recall(run):
    columns = columns_of(both(run))
    drawn = {plot.title: plot.plans[0] for plot in plots(columns, [])}
    assert list(drawn) == ["Growth – search", "Growth – add"]
    assert [list(label.lines) for label in drawn["Growth – add"].labels] == [["1,000"], ["10,000"]]
    assert [len(series.marks) for series in drawn["Growth – add"].series] == [2, 1]
