"""Each bug of the source that a story can show is put back, and the story must fail for it."""

import json
from dataclasses import replace
from itertools import count
from uuid import uuid4

import pytest

from memstory_reference.systems.observations import memory, observation, observations_store, ranking, research
from memstory_reference.systems.observations.memory import ObservationsMemory
from memstory_reference.systems.observations.observation import Observation
from memstory_reference.systems.observations.observations_store import ObservationsStore
from memstory_reference.targets.observations import ObservationsFactory
from memstory_reference.text import secret_guard

pytestmark = pytest.mark.usefixtures("minilm_weights")


def with_any_similarity(_plain):
    def rank(sim, score, rating=None):
        qual, q_adjust = ranking.quality(score), ranking.adjustment(rating)
        return ranking.Rank(sim=sim, qual=qual, q_adjust=q_adjust, rank=(0.7 * sim + 0.3 * qual) * q_adjust)

    return rank


def only_good_ones(plain):
    def admitted(observation, *rest):
        score = observation.final_score
        return plain(observation, *rest) and (score is None or score >= 7)

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
    def checked(one, config):
        kept = plain(one, config)
        return replace(kept, narrative=" ".join((kept.narrative, *kept.facts)))

    return checked


def of_all(plain):
    return lambda self, _owner, *args: plain(self, "all", *args)


def as_it_is(_plain):
    return lambda text: text


def without_common_words(plain):
    # Over the rows of everybody, and none where all are common.
    def named(self, owner, keywords, tasks):
        rows = sum(map(self.count, self.owners()))
        held = {one: sum(len(plain(self, who, [one], 1000)) for who in self.owners()) for one in keywords}
        telling = [one for one in keywords if held[one] <= rows / 2]
        return plain(self, owner, telling or keywords, tasks)

    return named


def with_the_best_alone(plain):
    async def related(self, task, owner):
        return ranking.best_of_each_task(await plain(self, task, owner))

    return related


def without_spared_sources(plain):
    async def compress_and_store(self, *, owner, sources, **run):
        return await plain(self, owner=owner, sources=() if await self.recent(owner) else sources, **run)

    return compress_and_store


OF_AN_OWNER = ("insert", "get", "vectors", "ids_by_words", "recent", "rate", "delete")
FACTORY = ObservationsFactory
MUTANTS = [
    ("O5: only the nearest are looked at", "'good' first", (memory, "pool_size", lambda _: lambda top_k: top_k)),
    ("O10: everything is about everything", "text is 'Prior work", (ranking, "is_admitted", True)),
    (
        "O11: words are the full-text query as they are",
        "cannot be used",
        (observations_store, "fts_query", lambda _: lambda words: " OR ".join(word.text for word in words)),
    ),
    (
        "O2: zero is taken for no score",
        "0.71, 0.71], not within",
        (ranking, "quality", lambda _: lambda score: (score or 5.0) / 10 * (0.5 if score and score < 7 else 1)),
    ),
    ("O1: similarity goes below zero", "data is", (memory, "rank", with_any_similarity)),
    (
        "O3: quality is ignored",
        "[0.87, 0.87]",
        (ranking, "rank", lambda plain: lambda sim, _score, rating=None: plain(sim, 8.0, rating)),
    ),
    (
        "O6: rating is ignored",
        "'b' before 'a'",
        (ranking, "rank", lambda plain: lambda sim, score, _rating=None: plain(sim, score)),
    ),
    (
        "O25: a secret is stored",
        "was not refused",
        (secret_guard, "secrets_in", ()),
    ),
    ("O4: low scores are excluded", "'near'", (ranking, "is_admitted", only_good_ones)),
    ("O13: the prompt is a format string", "Error", (memory, "compression_prompt", by_format_string)),
    (
        "O14: the reply is taken for JSON",
        "JSONDecodeError",
        (memory, "parse_summary", lambda plain: lambda reply: plain(json.dumps(json.loads(reply)))),
    ),
    ("O16: each storing makes a new id", "'outcome' is 'stored'", (ObservationsMemory, "store", with_new_ids)),
    (
        "O18: any score is stored",
        "was not refused",
        (
            observation,
            "checked_score",
            lambda plain: lambda score: score if isinstance(score, (int, float)) else plain(score),
        ),
    ),
    (
        "O12b: text is injected as it is",
        "'\\nKey facts:' 2 times",
        (research, "one_line", as_it_is),
        (observation, "one_line", as_it_is),
    ),
    (
        "O12: facts are embedded too",
        "text is 'Prior work",
        (memory, "checked_observation", with_facts_in_the_narrative),
    ),
    (
        "O16b: every run of a task takes a place",
        "hits count 3",
        (Observation, "normal_task", property(lambda self: self.id)),
    ),
    (
        "O22: words that most rows hold are dropped",
        "first; the hits are: no hits",
        (ObservationsStore, "ids_by_words", without_common_words),
    ),
    (
        "O23: repeats fill the pool",
        "hits count 1",
        (observations_store, "normal_task", lambda _: lambda _task: str(uuid4())),
    ),
    (
        "O24: the best run of a task alone says what was read, and it names only what it fetched",
        "'fetched' is",
        (ObservationsMemory, "find_related", with_the_best_alone),
        (ObservationsMemory, "compress_and_store", without_spared_sources),
    ),
    (
        "X3: owners share one memory",
        "hits have a memory of another user",
        *(
            (ObservationsStore, name, of_all)
            for name in ("insert", "get", "vectors", "ids_by_words", "recent", "rate", "delete")
        ),
    ),
    (
        "O16: the newest comes last",
        "'older' before 'newer'",
        (ObservationsStore, "recent", lambda plain: lambda *args: plain(*args)[::-1]),
    ),
]


async def test_the_story_notices(mutant, play_story):
    assert (await play_story(mutant.story)).reason is None
    with mutant.at_work():
        assert mutant.why in ((await play_story(mutant.story)).reason or "")
