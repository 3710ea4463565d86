from xml.etree import ElementTree as ET

import pytest

from memstory.reporting.comparing.columns import columns_of
from memstory.reporting.comparing.latency import latencies
from memstory.reporting.page.plots import plots


@pytest.fixture
def drawn(run):
    def draw(*cases):
        columns = columns_of([run("one", *cases)])
        return {plot.title: plot for plot in plots(columns, latencies(columns))}

    return draw


def test_recall_over_k_has_a_line_for_each_target(run, drawn):
    found = drawn(run.retrieval([1, 3, 0]), run.retrieval([2, 2, 2], target="other"))
    plot = found["Q1: Title of Q1 – recall over k"]
    assert plot.svg.count('class="series serie-') >= 2
    assert "Latency by operation" in found


def test_drawings_are_well_formed_and_have_no_script_style_or_handler(run, drawn):
    for plot in drawn(run.retrieval([1, 0], target="<b>x</b>")).values():
        root = ET.fromstring(plot.svg)  # noqa: S314  (our own drawing)
        names = {str(one.tag).rpartition("}")[2] for one in root.iter()}
        assert names <= {"svg", "defs", "g", "rect", "path", "text", "title", "circle", "line"}
        attributes = {name for one in root.iter() for name in one.attrib}
        assert not {name for name in attributes if name.startswith("on") or name in {"style", "href"}}


def test_the_same_run_gives_the_same_drawing(run, drawn):
    first, second = (drawn(run.retrieval([1, 0])) for _ in range(2))
    assert first == second
