from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.ordering import ObservationCandidate, best_of_each_task, rank_candidates
from memstory_reference.text.words import extract_keywords

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def observation(identifier, score=None, **fields):
    return Observation(
        id=identifier,
        title=fields.get("title", identifier),
        narrative=fields.get("narrative", identifier),
        facts=(),
        task=fields.get("task", f"task of {identifier}"),
        final_score=score,
        timestamp=fields.get("timestamp", NOON),
    )


def order(candidates, keywords=(), min_sim=0.3):
    return [entry.observation.id for entry in rank_candidates(candidates, keywords, min_sim=min_sim)]


def test_ties_go_to_the_newer_then_the_lower_id():
    newer = NOON + timedelta(seconds=1)
    candidates = [
        ObservationCandidate(observation=observation("b"), similarity=0.5),
        ObservationCandidate(observation=observation("a"), similarity=0.5),
        ObservationCandidate(observation=observation("c", timestamp=newer), similarity=0.5),
    ]
    assert order(candidates) == ["c", "a", "b"]


def test_one_common_keyword_does_not_admit_what_is_far():
    far = ObservationCandidate(
        observation=observation("x", narrative="a note on cost"), similarity=0.1, by_keyword=True
    )
    assert order([far], extract_keywords("cost control")) == []
    assert order([replace(far, similarity=0.3)], extract_keywords("cost control")) == ["x"]


def test_two_keywords_or_one_specific_admit_what_is_far():
    two = ObservationCandidate(
        observation=observation("x", narrative="cost and control"), similarity=0.0, by_keyword=True
    )
    name = ObservationCandidate(observation=observation("y", narrative="ran glm4:9b"), similarity=0.0, by_keyword=True)
    assert order([two], extract_keywords("cost control")) == ["x"]
    assert order([name], extract_keywords("tune glm4:9b")) == ["y"]


def test_runs_of_one_task_take_one_place():
    runs = [
        ObservationCandidate(observation=observation("weak", 6.0, task="Explain  caching"), similarity=0.9),
        ObservationCandidate(observation=observation("best", 9.0, task="explain caching"), similarity=0.9),
    ]
    ranked = best_of_each_task(rank_candidates(runs, (), min_sim=0.3))
    assert [entry.observation.id for entry in ranked] == ["best"]


@given(st.permutations(range(6)))
def test_the_order_does_not_depend_on_who_came_first(places):
    candidates = [
        ObservationCandidate(observation=observation(str(place), float(place)), similarity=0.5 + place % 2 / 4)
        for place in range(6)
    ]
    assert order([candidates[place] for place in places]) == order(candidates)
