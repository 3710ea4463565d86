import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.pipeline.reading import preference_key


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I prefer tabs", "I prefer spaces"),
        ("I prefer tabs over spaces", "Actually, I prefer spaces."),
        ("I prefer tabs", "I prefer spaces for indentation"),
        ("I prefer light mode", "I prefer dark mode"),
        ("I prefer window seats", "i prefer aisle seats"),
        ("I prefer MySQL to Postgres", "I prefer Postgres over MySQL"),
        ("my favorite color is blue", "My favourite color is green!"),
        ("my favorite color is blue", "Green is my favorite color"),
        ("I prefer FastAPI for small services", "I prefer Flask for small services"),
        ("I hate olives", "I hate olives, really"),
        ("I prefer short answers", "I prefer long answers over short ones"),
        ("I prefer dark over light", "I prefer the light theme"),
        ("I prefer big dogs over small dogs", "I prefer small dogs"),
        ("I prefer metric", "I prefer imperial"),
        ("I prefer Python.", "I now prefer Rust."),
        ("I prefer tea", "I currently prefer coffee now"),
        ("I prefer buses", "I prefer the train to the bus"),
    ],
)
def test_the_later_word_on_one_thing_has_the_same_key(earlier, later):
    assert preference_key(earlier, "one") == preference_key(later, "two")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I hate olives", "I hate onions"),
        ("I hate tabs", "I prefer tabs"),
        ("I prefer jazz", "I prefer porridge"),
        ("I prefer tea in the morning", "I prefer coffee at noon"),
        ("I prefer short answers in the morning", "I prefer porridge in the morning"),
        ("I always drink tea in the morning", "I always drink tea at noon"),
        ("my favorite color is blue", "my favorite city is Graz"),
        ("I prefer dark mode", "I prefer dark chocolate"),
        ("I prefer window seats", "I prefer leather seats"),
        ("I prefer short answers", "I prefer precise answers"),
        ("I prefer light mode", "I prefer light meals"),
        ("I prefer formal letters", "I prefer casual shoes"),
        ("I prefer email", "I prefer calls from my mother on Sundays"),
        ("I prefer bikes", "I prefer planes for long trips"),
        ("I prefer tea", "I prefer iced tea in summer"),
        ("I prefer cats", "I prefer big dogs over small dogs"),
        ("I prefer cats", "I prefer dogs to children"),
        ("I prefer Italian food", "I prefer Thai food"),
        ("I prefer chamomile tea", "I prefer dark coffee"),
    ],
)
def test_different_things_have_different_keys(one, other):
    assert preference_key(one, "one") != preference_key(other, "two")


@pytest.mark.parametrize(
    "text",
    [
        "I prefer tabs. I hate olives.",
        "I moved to Graz last month and work as a nurse there. I prefer tabs.",
        "I prefer",
        "no signal at all",
        "```\nI prefer tabs\n```",
    ],
)
def test_a_text_that_says_more_than_one_preference_keeps_its_own_key(text):
    assert preference_key(text, "hash") == "content:hash"


@given(st.text(max_size=200))
def test_any_text_has_a_key(text):
    assert preference_key(f"I prefer {text}", "hash").strip()
    assert preference_key(f"my favorite {text}", "hash").strip()


@pytest.mark.parametrize("unit", ["my favorite ", "I prefer ", "a-", "a ", "for "])
def test_a_long_run_has_a_key(unit):
    assert preference_key("I prefer my favorite " + unit * 10_000, "hash")
