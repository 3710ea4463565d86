"""Each bug of the source that a story can show is put back, and the story must no longer pass."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memstory.language.stories import load_stories
from memstory.playing import play
from memstory_reference.systems.observations import compression, injection, observation, ordering, quality, service
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.targets.observations import target

STORIES = Path(__file__).parents[4] / "stories"


@pytest.fixture(scope="module")
def stories():
    files = [*sorted((STORIES / "observations").glob("*.yaml")), STORIES / "security" / "security.yaml"]
    return {story.id: story for file in files for story in load_stories(file, file.name)}


@pytest.fixture
def outcome(stories, tmp_path):
    async def outcome_of(story):
        return (await play(stories[story], target.ObservationsFactory(), tmp_path)).outcome

    return outcome_of


def only_the_nearest(patch):
    patch.setattr(service, "pool_size", lambda top_k: top_k)


def everything_is_about_everything(patch):
    patch.setattr(ordering, "admitted", lambda *_: True)


def raw_words_in_the_full_text_query(patch):
    patch.setattr(
        "memstory_reference.systems.observations.observations_store.fts_query",
        lambda keywords: " OR ".join(keyword.text for keyword in keywords),
    )


def zero_taken_for_no_score(patch):
    patch.setattr(quality, "quality", lambda score: (score or 5.0) / 10 * (0.5 if score and score < 7 else 1))


def similarity_below_zero(patch):
    def rank(sim, score, rating=None):
        qual, q_adjust = quality.quality(score), quality.adjustment(rating)
        return quality.Rank(sim=sim, qual=qual, q_adjust=q_adjust, rank=(0.7 * sim + 0.3 * qual) * q_adjust)

    patch.setattr(target, "rank", rank)


def quality_is_ignored(patch):
    plain = quality.rank
    patch.setattr(ordering, "rank", lambda sim, _score, rating=None: plain(sim, 8.0, rating))


def rating_is_ignored(patch):
    plain = quality.rank
    patch.setattr(ordering, "rank", lambda sim, score, _rating=None: plain(sim, score))


def low_scores_are_excluded(patch):
    plain = ordering.admitted

    def admitted(candidate, *rest):
        score = candidate.observation.final_score
        return plain(candidate, *rest) and (score is None or score >= 7)

    patch.setattr(ordering, "admitted", admitted)


def the_prompt_is_a_format_string(patch):
    template = "{output[:2000]}"
    patch.setattr(service, "compression_prompt", lambda task, output: template.format(task=task, output=output))


def the_reply_is_taken_for_json(patch):
    def parse(reply):
        return compression.parse_summary(json.dumps(json.loads(reply)))

    patch.setattr(service, "parse_summary", parse)


def a_new_id_at_every_storing(patch):
    plain, numbers = service.ObservationService.store, iter(range(100))

    async def store(self, observations, owner):
        return await plain(self, [replace(one, id=f"{one.id}-{next(numbers)}") for one in observations], owner)

    patch.setattr(service.ObservationService, "store", store)


def any_score_is_stored(patch):
    patch.setattr(observation, "check_score", lambda _: None)


def text_is_injected_as_it_is(patch):
    patch.setattr(injection, "one_line", lambda text: text)
    patch.setattr(observation, "one_line", lambda text: text)


def facts_are_embedded_too(patch):
    plain = service.checked

    def checked(one):
        kept = plain(one)
        return replace(kept, narrative=" ".join((kept.narrative, *kept.facts)))

    patch.setattr(service, "checked", checked)


def every_run_of_a_task_takes_a_place(patch):
    patch.setattr(observation.Observation, "normal_task", property(lambda self: self.id))


def owners_share_one_memory(patch):
    for name in ("insert", "get", "vectors", "named", "recent", "rate", "delete"):
        plain = getattr(ObservationsStore, name)
        patch.setattr(ObservationsStore, name, lambda self, _owner, *args, plain=plain: plain(self, "all", *args))


def prior_work_is_fetched_again(patch):
    patch.setattr(observation.Observation, "sources", ())


def the_newest_comes_last(patch):
    plain = ObservationsStore.recent
    patch.setattr(ObservationsStore, "recent", lambda self, owner, limit: plain(self, owner, limit)[::-1])


pytestmark = pytest.mark.usefixtures("minilm_weights")

MUTANTS = [
    (only_the_nearest, "O5"),
    (everything_is_about_everything, "O10"),
    (raw_words_in_the_full_text_query, "O11"),
    (zero_taken_for_no_score, "O2"),
    (similarity_below_zero, "O1"),
    (quality_is_ignored, "O3"),
    (rating_is_ignored, "O6"),
    (low_scores_are_excluded, "O4"),
    (the_prompt_is_a_format_string, "O13"),
    (the_reply_is_taken_for_json, "O14"),
    (a_new_id_at_every_storing, "O16"),
    (any_score_is_stored, "O18"),
    (text_is_injected_as_it_is, "O12b"),
    (facts_are_embedded_too, "O12"),
    (every_run_of_a_task_takes_a_place, "O16b"),
    (owners_share_one_memory, "X3"),
    (the_newest_comes_last, "O16"),
]


@pytest.mark.parametrize(("mutate", "story"), MUTANTS, ids=[mutate.__name__ for mutate, _ in MUTANTS])
async def test_the_story_notices(mutate, story, outcome, monkeypatch):
    # In this process: a crash would run a healthy child.
    mutate(monkeypatch)
    assert await outcome(story) != "passed"


@pytest.mark.parametrize("story", sorted({story for _, story in MUTANTS}))
async def test_without_the_bug_the_story_passes(story, outcome):
    assert await outcome(story) == "passed"
