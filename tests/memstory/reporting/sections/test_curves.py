"""The table of what perturbations cost."""

from dataclasses import replace

import pytest

from memstory.language.matchers.means import scores_of
from memstory.reporting.markdown import as_markdown
from memstory.reporting.sections.scores import curves
from memstory.results.recording import QuestionRecord, RetrievalRecord


@pytest.fixture
def run_at(make_case, run_of):
    """Return a function: levels, each with the ranks at which questions found their document, to a run."""

    def make(*levels):
        records = tuple(record(level, ranks) for level, ranks in levels)
        trial = make_case.trial()
        scores = tuple(score for one in records for score in scores_of(one))
        trial = replace(trial, scores=scores, recording=replace(trial.recording, steps=(), retrieval=records))
        return run_of([make_case("Q2", trials=[trial])])

    return make


def record(level, ranks):
    found = {
        id_: tuple("gold" if place == rank else f"other{place}" for place in range(1, 6)) for id_, rank in ranks.items()
    }
    questions = tuple(QuestionRecord(id=id_, relevant=("gold",), retrieved=hits) for id_, hits in found.items())
    return RetrievalRecord(name="facts", digest="d", k=5, documents=9, smallest=9, questions=questions, level=level)


def rows(run):
    return [line for line in as_markdown(curves(run)).splitlines() if line.startswith("| topics")]


def test_each_level_is_beside_the_plain_task_with_the_difference(run_at):
    made = run_at(({"distractors": 0}, {"a": 1, "b": 1}), ({"distractors": 200}, {"a": 1, "b": 2}))
    plain, harder = rows(made)
    assert plain.startswith("| topics | plain | 1.000 | 1.000 |")
    assert harder.startswith("| topics | distractors 200 | 1.000 (+0.000) |")
    assert "0.750 (-0.250)" in harder
    assert harder.endswith("| -0.250 [-0.500, +0.000] |")


def test_variants_are_compared_with_the_query_that_they_stand_for(run_at):
    made = run_at(({"paraphrase": False}, {"a~b": 1}), ({"paraphrase": True}, {"a~b~1": 1, "a~b~2": 2}))
    assert rows(made)[1].endswith("| -0.250 [-0.250, -0.250] |")


def test_a_task_that_is_not_perturbed_has_no_table(run_at):
    assert not curves(run_at(({}, {"a": 1})))
