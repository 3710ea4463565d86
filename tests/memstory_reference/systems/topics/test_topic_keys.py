import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.systems.topics.topic_keys import is_under, lookup_key, topic_id, topic_key


@pytest.mark.parametrize(
    ("given_topic", "expected"),
    [
        ("user.name", "user.name"),
        (" User.Name ", "user.name"),
        ("user.name\n", "user.name"),
        ("project.stack.database_2", "project.stack.database_2"),
        ("CONSTRAINT.TABS", "constraint.tabs"),
    ],
)
def test_a_topic_is_stripped_and_lowered(given_topic, expected):
    assert topic_key(given_topic) == expected


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "  ",
        "user",
        "user.",
        ".user",
        "user..name",
        "user.na me",
        "user.name.",
        "feedback.q1",
        "random",
        "users.name",
        "user-name",
        "user.naïve",
        "\uff55ser.name",  # full-width u
        "u\u0455er.name",  # Cyrillic s
        "user.\u212aey",  # the Kelvin sign, which folds to k
        "user." + "x" * 200,
        "user.name\x00",
    ],
)
def test_what_is_no_topic_is_refused_with_the_three_prefixes(topic):
    with pytest.raises(InputError, match=r"user\.\*, project\.\* or constraint\.\*"):
        topic_key(topic)


def test_a_prefix_that_is_nearly_right_is_named():
    with pytest.raises(InputError, match=r"Did you mean 'project\.'\?"):
        topic_key("projekt.deadline")


def test_relaxed_topics_are_any_words_with_dots_but_never_feedback():
    assert topic_key("weather.today", strict=False) == "weather.today"
    for topic in ("feedback.q1", "a b", "a..b", ""):
        with pytest.raises(InputError, match=r"feedback\.\*"):
            topic_key(topic, strict=False)


@given(st.text(max_size=60))
def test_a_topic_that_may_be_written_is_found_under_the_same_key(text):
    try:
        key = topic_key(text)
    except InputError:
        return
    assert lookup_key(text) == lookup_key(key) == key


def test_the_id_of_a_topic_names_its_owner():
    assert topic_id("ann", "user.name") != topic_id("bob", "user.name")


@pytest.mark.parametrize(
    ("topic", "prefix", "expected"),
    [
        ("user.name", "", True),
        ("user.name", "user", True),
        ("user.name", "user.", True),
        ("user.name", "user.name", True),
        ("user.name", "use", False),
        ("user.name", "project", False),
    ],
)
def test_a_prefix_ends_between_words(topic, prefix, expected):
    assert is_under(topic, prefix) is expected
