"""What holds of the ranking whatever is in the pool."""

import doctest
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.turns.ranking import pool as pool_module
from memstory_reference.systems.turns.ranking import question as question_module
from memstory_reference.systems.turns.ranking import scoring, spans
from memstory_reference.systems.turns.ranking.languages import ENGLISH
from memstory_reference.systems.turns.ranking.pool import Candidate, Pool
from memstory_reference.systems.turns.ranking.question import read_question
from memstory_reference.systems.turns.ranking.scoring import ranked
from memstory_reference.systems.turns.ranking.spans import Span, closeness, held, spans_in
from memstory_reference.text import stems as stems_module
from memstory_reference.text.stems import stems

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("module", [scoring, spans, pool_module, question_module, stems_module])
def test_doctests_hold(module):
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def candidate(place, text="tea", *, speaker=None, session=None, days=0, cosine=0.5):
    words = stems(text)
    vector = np.zeros(8, np.float32)
    vector[place % 8] = 1
    return Candidate(id=f"t{place}", place=place, before=place - 1, after=place + 1, session=session, speaker=speaker,
                     moment=NOON - timedelta(days=days), is_dated=bool(days), text=text, stems=words, cosine=cosine,
                     vector=vector)  # fmt: skip


def pool_of(candidates, turns=1000):
    found = [set(one.stems) for one in candidates]
    holding = {stem: sum(stem in own for own in found) for own in found for stem in own}
    return Pool(candidates=candidates, holding=holding, turns=turns, mean_words=4.0)


candidates = st.lists(
    st.builds(
        candidate,
        st.integers(1, 40),
        st.text("abc ?", max_size=20),
        speaker=st.sampled_from([None, "Ann", "Ben"]),
        session=st.sampled_from([None, "s", "t"]),
        days=st.integers(0, 900),
        cosine=st.floats(-1, 1),
    ),
    max_size=12,
    unique_by=lambda one: one.place,
)
questions = st.sampled_from(["a b", "Where does Ann live now?", "abc on 8 May 2025", "", "?", "in May", "Ann and Ben"])


@given(candidates, questions)
def test_every_candidate_is_ranked_once_best_first_by_finite_terms_that_add_up(found, text):
    question = read_question(text, {"Ann", "Ben"}, NOON)
    order = ranked(pool_of(found), question)
    assert sorted(one.candidate.place for one in order) == sorted(one.place for one in found)
    scores = [one.score for one in order]
    assert scores == sorted(scores, reverse=True)
    for one in order:
        assert np.isfinite(one.score)
        assert one.score == pytest.approx(sum(one.terms.values()), abs=1e-4)
        assert -1 <= one.evidence <= 1 + 1e-6


@given(candidates, questions, st.randoms())
def test_the_order_of_the_pool_does_not_matter(found, text, random):
    question, mixed = read_question(text, {"Ann", "Ben"}, NOON), list(found)
    random.shuffle(mixed)
    assert [one.candidate.id for one in ranked(pool_of(mixed), question)] == [
        one.candidate.id for one in ranked(pool_of(found), question)
    ]


def test_equal_turns_come_newer_first_then_by_id():
    found = [candidate(1), candidate(3), candidate(5, days=2)]
    found = [replace(one, before=None, after=None, is_dated=False) for one in found]
    order = ranked(pool_of(found), read_question("tea", set(), NOON))
    assert [one.candidate.id for one in order] == ["t1", "t3", "t5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 8 May 2023", [Span(2023, 5, 8)]),
        ("on the 8th of May", [Span(None, 5, 8)]),
        ("May 8th, 2023", [Span(2023, 5, 8)]),
        ("in May", [Span(None, 5)]),
        ("May 2023", [Span(2023, 5)]),
        ("in 2023", [Span(2023)]),
        ("on 2023-05-08", [Span(2023, 5, 8)]),
        ("may I come?", []),
        ("the march of time", []),
        ("in march", [Span(None, 3)]),
        ("yesterday", [Span(2025, 12, 31)]),
        ("3 weeks ago", [Span(2025, 12, 11)]),
        ("last month", [Span(2025, 12)]),
        ("2 years ago", [Span(2024)]),
        ("room 2023b", []),
        ("between May 2023 and June 2024", [Span(2023, 5), Span(2024, 6)]),
    ],
)
def test_dates_are_read_as_people_write_them(text, expected):
    assert list(spans_in(text, NOON, ENGLISH)) == expected


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading_of_dates(text):
    for span in spans_in(text, NOON, ENGLISH):
        assert 0 <= closeness(span, NOON) <= spans.SAME_DAY
        assert 0 <= held(span, NOON) <= spans.HELD


@pytest.mark.parametrize("span", [Span(2023, 2, 31), Span(9999, 12, 31), Span(0, 1), Span(2023, 2)])
def test_a_date_that_does_not_exist_fits_nothing_and_breaks_nothing(span):
    assert 0 <= closeness(span, NOON) <= spans.SAME_DAY
    assert 0 <= held(span, NOON) <= spans.HELD


def test_names_of_speakers_are_no_words_to_look_for_but_others_are():
    asked = read_question("What did Ann's friend Zoe cook for Ben?", {"Ann Lee", "Ben"}, NOON)
    assert asked.named == ("Ann Lee", "Ben")
    assert asked.stems == ("friend", "zoe", "cook")


def test_a_question_of_nothing_but_such_words_is_looked_for_as_it_is():
    assert read_question("Who are you?", {"You"}, NOON).stems == ("who", "you")


def test_other_scripts_are_found_by_their_signs():
    assert stems("我用Python") == ["我", "用", "python"]
