"""What holds of the ranking whatever is in the pool."""

import doctest
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.turns import question as question_module
from memstory_reference.systems.turns import ranking
from memstory_reference.systems.turns.question import (
    ENGLISH,
    HELD,
    SAME_DAY,
    Span,
    closeness,
    compared_events,
    holding_share,
    read_question,
    spans_in,
)
from memstory_reference.systems.turns.ranking import empty_pool, rank_turns, score_candidates
from memstory_reference.systems.turns.turn import NewTurn, checked_turn
from memstory_reference.text import words as words_module
from memstory_reference.text.words import stems

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("module", [question_module, ranking, words_module])
def test_doctests_hold(module):
    result = doctest.testmod(module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_equal_turns_come_newer_first_then_by_id(pool_for):
    days = {1: 1, 2: 2, 3: 1}
    turns = {
        number: checked_turn(NewTurn(text="tea"), f"t{5 - number}", NOON - timedelta(days=ago))
        for number, ago in days.items()
    }
    question = read_question("tea", set(), NOON)
    first = score_candidates(pool_for(turns, question, dict.fromkeys(turns, (1, 0)), (1, 0)), question)
    order = rank_turns(first, {row: turns[row + 1] for row in range(3)})
    assert [one.turn.id for one in order] == ["t2", "t4", "t3"]


def test_an_empty_pool_is_ranked_as_nothing():
    question = read_question("tea", set(), NOON)
    first = score_candidates(empty_pool(), question)
    assert first.to_read(5, -1.0).tolist() == []
    assert rank_turns(first, {}) == []


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
        ("in spring 2024", [Span(2024, 3), Span(2024, 4), Span(2024, 5)]),
        ("in the winter of 2024 to 2025", [Span(2024, 12), Span(2025, 1), Span(2025, 2)]),
        ("around New Year 2025", [Span(2024, 12), Span(2025, 1)]),
        ("at the end of 2024", [Span(2024, 12)]),
        ("at the end of March 2024", [Span(2024, 3)]),
        ("in mid-2024", [Span(2024, 6), Span(2024, 7)]),
        ("from the end of 2024 to 2025", [Span(2024, 12), Span(2025)]),
        ("in spring", []),
        ("between May 2023 and June 2024", [Span(2023, 5), Span(2024, 6)]),
    ],
)
def test_dates_are_read_as_people_write_them(text, expected):
    assert list(spans_in(text, NOON, ENGLISH)) == expected


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading_of_dates(text):
    for span in spans_in(text, NOON, ENGLISH):
        assert 0 <= closeness(span, NOON) <= SAME_DAY
        assert 0 <= holding_share(span, NOON) <= HELD


@pytest.mark.parametrize("span", [Span(2023, 2, 31), Span(9999, 12, 31), Span(0, 1), Span(2023, 2)])
def test_a_date_that_does_not_exist_fits_nothing_and_breaks_nothing(span):
    assert 0 <= closeness(span, NOON) <= SAME_DAY
    assert 0 <= holding_share(span, NOON) <= HELD


def test_names_of_speakers_are_no_words_to_look_for_but_others_are():
    asked = read_question("What did Ann's friend Zoe cook for Ben?", {"Ann Lee", "Ben"}, NOON)
    assert asked.named == ("Ann Lee", "Ben")
    assert asked.stems == ("friend", "zoe", "cook")


def test_a_question_of_nothing_but_such_words_is_looked_for_as_it_is():
    assert read_question("Who are you?", {"You"}, NOON).stems == ("who", "you")


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("Which came first, the flood or Ana's fall?", ("the flood", "Ana's fall")),
        ("Which happened later in May 2024, the flood, or Ana's fall?", ("the flood", "Ana's fall")),
        ("Did the river rise before or after Ana fell?", ("Did the river rise", "Ana fell")),
        ("Was the flood earlier than Ana's fall?", ("Was the flood", "Ana's fall")),
        ("Did the river rise before Ana fell?", ("the river rise", "Ana fell")),
        ("Had Ana fallen when the river rose, or did she fall later?", ("Ana fallen", "the river rose")),
        ("When the river rose, had Ana fallen already?", ("the river rose", "Ana fallen already")),
        ("The flood and Ana's fall: which was the earlier?", ("The flood", "Ana's fall")),
        ("Did the river first rise, or did Ana fall?", ("the river first rise", "Ana fall")),
        ("What did Ana do after the flood?", ()),
        ("When did Ana first see the flood?", ()),
        ("Would Ana rather have tea or coffee?", ()),
        ("Did Ana fall before?" + " a" * 200 + " or b", ()),
    ],
)
def test_a_question_that_compares_two_events_in_time_is_taken_apart(text, events):
    assert compared_events(text) == events


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("What did you recommend for the bath?", True),
        ("Which of the steps that you suggested are left?", True),
        ("What was your advice on the tiles?", True),
        ("Have you already told me the price?", True),
        ("What did I tell you about the bath?", False),
        ("Can you tell me where the tiles are?", False),
        ("What did Ana say to you?", False),
    ],
)
def test_what_you_said_is_asked_of_the_assistant(text, asks):
    assert read_question(text, {"user", "assistant"}, NOON).asks_assistant is asks


@given(st.text("did before or after first,: a", max_size=200))
def test_events_are_never_empty(text):
    assert all(compared_events(text))
    assert len(compared_events(text)) in {0, 2}


def test_other_scripts_are_found_by_their_signs():
    assert stems("我用Python") == ["我", "用", "python"]
