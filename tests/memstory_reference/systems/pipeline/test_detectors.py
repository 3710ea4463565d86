import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.pipeline.ingest import salience
from memstory_reference.systems.pipeline.reading import (
    Detectors,
    has_entity,
    has_number,
    has_preference,
    holds_facts,
    is_about_now,
    is_technical,
    memory_type_of,
)

DETECTORS = Detectors()


@pytest.mark.parametrize(
    "text", ["we met Alice", "Alice works at Acme", "use PostgreSQL", "Graz's bridges", "New York"]
)
def test_a_name_is_noticed(text):
    assert has_entity(text)


@pytest.mark.parametrize(
    "text",
    ["The trip was long", "ok thanks", "I think so", "Yes. So it is", "- Buy milk", "SHOUTING ALL", "see you Monday"],
)
def test_a_mere_capital_is_no_name(text):
    assert not has_entity(text)


@pytest.mark.parametrize(
    "text", ["3 hours", "on Friday", "in January", "two dogs", "\u0663 ساعات", "2026-01-01", "tomorrow"]
)
def test_numbers_and_dates_are_noticed(text):
    assert has_number(text)


@pytest.mark.parametrize("text", ["nobody knows", "it may rain", "someone came"])
def test_what_only_looks_like_a_number_or_date_is_none(text):
    assert not has_number(text)


@pytest.mark.parametrize("text", ["I prefer tea", "i ALWAYS lose", "I  hate it", "my favorite", "My favourite colour"])
def test_the_four_signals_of_preference_are_noticed_in_any_case(text):
    assert has_preference(text)


@pytest.mark.parametrize("text", ["AI prefers", "they hate it", "Hawaii always", "my favorites", "I preferred"])
def test_other_words_are_no_preference(text):
    assert not has_preference(text)


@pytest.mark.parametrize("text", ["the kubernetes ingress misbehaves", "run pip_install.sh", "std::vector overflow"])
def test_rare_words_are_technical(text):
    assert is_technical(text)


@pytest.mark.parametrize("text", ["we talked about the trip", "", "the yesterday evening was wonderful", "我喜欢"])
def test_everyday_words_are_not_technical(text):
    assert not is_technical(text)


@pytest.mark.parametrize(
    "text", ["right now we rest", "Now the tests run", "we are currently stuck", "in this session"]
)
def test_the_present_is_noticed(text):
    assert is_about_now(text)


@pytest.mark.parametrize("text", ["I know", "we met until now and then", "nowhere"])
def test_what_is_not_about_now_is_told_apart(text):
    assert not is_about_now(text)


@pytest.mark.parametrize(
    "text",
    ["Alice works at Acme", "User is building a product with FastAPI", "My name is Ilse", "I live in Graz",
     "The user's dog is old", "Ilse lives in Graz. Bertrand works at Acme.", "Oslo is cold. We laughed."],
)  # fmt: skip
def test_facts_have_subject_predicate_and_object(text):
    assert holds_facts(text)


@pytest.mark.parametrize(
    "text",
    ["We talked about the trip", "Is Alice at Acme?", "It is raining", "They laughed. We left. Oslo is cold.",
     "Discussed database migration from MySQL to PostgreSQL.", "", "ok"],
)  # fmt: skip
def test_events_and_questions_are_no_facts(text):
    assert not holds_facts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met Alice", 0.3), ("we waited 3 hours", 0.2), ("I prefer tabs", 0.4),
        ("the kubernetes ingress misbehaves", 0.1), ("I prefer PostgreSQL 16", 1.0), ("ok thanks", 0.0),
        ("3 of them waited 4 hours", 0.2), ("I prefer tabs. I hate rain.", 0.4),
        ("look:\n```\nI prefer tabs\n```", 0.0),
    ],
)  # fmt: skip
def test_salience_counts_each_signal_once(text, expected):
    assert salience(DETECTORS.signals(text)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Do I prefer tea?", "episodic"), ("He told me 'I hate you'", "episodic"),
        ("She said I always lie", "episodic"),
        ("She told me: \u201cI hate you\u201d", "episodic"), ("I wonder if I prefer tea", "episodic"),
        ("I always knew that she would come", "episodic"), ("I always wanted a boat", "episodic"),
        ("My favorite part was the end", "episodic"), ("Star Wars! It's my favorite movie.", "episodic"),
        (f"I always walk home, {'and on ' * 20}", "episodic"), ("Now and then we meet", "episodic"),
        ("We left at noon", "episodic"), ("The meeting was long", "episodic"),
        ("Bob moved to Rome", "semantic"), ("My boss quit yesterday", "semantic"), ("I moved to Oslo", "semantic"),
        ("I told you I prefer tea", "procedural"), ("Green is my favorite color", "procedural"),
        ("I prefer tea. What about you?", "procedural"), ("I don't like it, I hate rain", "procedural"),
        ("I hate Bob's 'quotes'", "procedural"), ("If you ask me, I prefer tea", "procedural"),
    ],
)  # fmt: skip
def test_only_a_short_statement_is_a_preference_and_what_lasts_a_fact(text, kind):
    assert memory_type_of(text, DETECTORS) == kind


@given(st.text(max_size=300))
def test_any_text_has_a_kind(text):
    assert memory_type_of(f"I prefer {text} 'I hate", DETECTORS)


def test_only_the_user_has_preferences():
    assert not DETECTORS.signals("I prefer tabs", is_from_user=False).has_preference
    assert memory_type_of("I prefer tabs", DETECTORS, is_from_user=False) != "procedural"


def test_a_detector_can_be_another():
    detectors = Detectors(entity=lambda text: "graz" in text)
    assert detectors.signals("to graz").has_entity


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I prefer tabs right now", "procedural"), ("Right now we are debugging auth", "working"),
        ("Alice works at Acme", "semantic"), ("We talked about the trip", "episodic"), ("", "episodic"),
        ("```\nI prefer tabs\n```", "episodic"), ("我下个月搬家", "episodic"),
    ],
)  # fmt: skip
def test_the_first_rule_that_holds_gives_the_type(text, kind):
    assert memory_type_of(text, DETECTORS) == kind


@given(st.text())
def test_no_text_breaks_a_detector(text):
    assert 0.0 <= salience(DETECTORS.signals(text)) <= 1.0
    assert memory_type_of(text, DETECTORS)


# No assertion on time: a pattern that were quadratic would hold this run for minutes (SEC-14).
@pytest.mark.parametrize("unit", ["a ", "A", "I  ", "Is ", "-", "aA", "A of ", "a'", "\n", "at the ", "I'm "])
def test_a_long_run_is_read_to_its_end(unit):
    text = unit * (100_000 // len(unit))
    assert salience(DETECTORS.signals(text)) <= 1.0
    assert memory_type_of(text, DETECTORS)
