"""Each bug of the source that a story can show is put back, and the story must fail for it."""

import json
from dataclasses import replace
from itertools import count

import pytest

from memstory_reference.systems.observations import (
    injection,
    observation,
    observations_store,
    ordering,
    quality,
    service,
)
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.systems.observations.service import ObservationService
from memstory_reference.targets.observations import target
from memstory_reference.targets.observations.target import ObservationsFactory

pytestmark = pytest.mark.usefixtures("minilm_weights")


def with_any_similarity(_plain):
    def rank(sim, score, rating=None):
        qual, q_adjust = quality.quality(score), quality.adjustment(rating)
        return quality.Rank(sim=sim, qual=qual, q_adjust=q_adjust, rank=(0.7 * sim + 0.3 * qual) * q_adjust)

    return rank


def only_good_ones(plain):
    def admitted(candidate, *rest):
        score = candidate.observation.final_score
        return plain(candidate, *rest) and (score is None or score >= 7)

    return admitted


def by_format_string(_plain):
    template = "{output[:2000]}"
    return lambda task, output: template.format(task=task, output=output)


def with_new_ids(plain):
    numbers = count()

    async def store(self, observations, owner):
        return await plain(self, [replace(one, id=f"{one.id}-{next(numbers)}") for one in observations], owner)

    return store


def with_facts_in_the_narrative(plain):
    def checked(one):
        kept = plain(one)
        return replace(kept, narrative=" ".join((kept.narrative, *kept.facts)))

    return checked


def of_all(plain):
    return lambda self, _owner, *args: plain(self, "all", *args)


def as_it_is(_plain):
    return lambda text: text


OF_AN_OWNER = ("insert", "get", "vectors", "named", "recent", "rate", "delete")
FACTORY = ObservationsFactory
MUTANTS = [
    ("only the nearest are looked at", "O5", "'good' first", (service, "pool_size", lambda _: lambda top_k: top_k)),
    ("everything is about everything", "O10", "text is 'Prior work", (ordering, "admitted", True)),
    (
        "words are the full-text query as they are",
        "O11",
        "cannot be used",
        (observations_store, "fts_query", lambda _: lambda words: " OR ".join(word.text for word in words)),
    ),
    (
        "zero is taken for no score",
        "O2",
        "0.71, 0.71], not within",
        (quality, "quality", lambda _: lambda score: (score or 5.0) / 10 * (0.5 if score and score < 7 else 1)),
    ),
    ("similarity goes below zero", "O1", "data is", (target, "rank", with_any_similarity)),
    (
        "quality is ignored",
        "O3",
        "[0.87, 0.87]",
        (ordering, "rank", lambda plain: lambda sim, _score, rating=None: plain(sim, 8.0, rating)),
    ),
    (
        "rating is ignored",
        "O6",
        "'b' before 'a'",
        (ordering, "rank", lambda plain: lambda sim, score, _rating=None: plain(sim, score)),
    ),
    ("low scores are excluded", "O4", "'near'", (ordering, "admitted", only_good_ones)),
    ("the prompt is a format string", "O13", "Error", (service, "compression_prompt", by_format_string)),
    (
        "the reply is taken for JSON",
        "O14",
        "JSONDecodeError",
        (service, "parse_summary", lambda plain: lambda reply: plain(json.dumps(json.loads(reply)))),
    ),
    ("each storing makes a new id", "O16", "'outcome' is 'stored'", (ObservationService, "store", with_new_ids)),
    (
        "any score is stored",
        "O18",
        "was not refused",
        (
            observation,
            "check_score",
            lambda plain: lambda score: None if isinstance(score, (int, float)) else plain(score),
        ),
    ),
    (
        "text is injected as it is",
        "O12b",
        "'\\nKey facts:' 2 times",
        (injection, "one_line", as_it_is),
        (observation, "one_line", as_it_is),
    ),
    ("facts are embedded too", "O12", "text is 'Prior work", (service, "checked", with_facts_in_the_narrative)),
    (
        "every run of a task takes a place",
        "O16b",
        "hits count 3",
        (Observation, "normal_task", property(lambda self: self.id)),
    ),
    (
        "owners share one memory",
        "X3",
        "'text' is 'Ilse', not 'Bertrand'",
        *(
            (ObservationsStore, name, of_all)
            for name in ("insert", "get", "vectors", "named", "recent", "rate", "delete")
        ),
    ),
    (
        "the newest comes last",
        "O16",
        "'older' before 'newer'",
        (ObservationsStore, "recent", lambda plain: lambda *args: plain(*args)[::-1]),
    ),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
