import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.errors import InputError
from memstory_reference.ports import Match, Record
from memstory_reference.systems.topics.entries import (
    MAX_METADATA_KEYS,
    RESERVED,
    check_metadata,
    clamped_reward,
    effective_score,
    find_forgotten,
    lookup_key,
    rank_engrams,
    stored_moment,
    topic_id,
    topic_key,
    turn_text,
)


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


@pytest.mark.parametrize(("value", "expected"), [(1, 1), (-7, -1), (0.5, 0.5), (1e308, 1)])
def test_a_reward_is_cut_to_between_minus_one_and_one(value, expected):
    assert clamped_reward(value) == expected


@pytest.mark.parametrize("value", [math.nan, -math.inf, True, "1", None, 10**400])
def test_a_reward_that_is_no_number_is_refused(value):
    with pytest.raises(InputError, match="reward"):
        clamped_reward(value)


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_metadata_that_the_memory_writes_cannot_come_from_a_caller(key):
    # LF-10
    with pytest.raises(InputError, match="reserved"):
        check_metadata({key: "x"})


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": []},
        {"a": {"$ne": 1}},
        {"$and": 1},
        {"": 1},
        {"a": math.nan},
        {"a": 2**63},
        {"a": "x\0"},
        {"a": "x" * 10_001},
        {f"k{n}": n for n in range(MAX_METADATA_KEYS + 1)},
        {"timestamp_utc": "yesterday"},
        {"timestamp_utc": "2026-05-30T09:00:00"},
        {"timestamp_utc": 5},
        {"timestamp_utc": "9999-12-31T23:59:59-12:00"},
        ["x"],
        "x",
        {5: "x"},
    ],
)
def test_metadata_is_flat_small_and_of_simple_types(metadata):
    with pytest.raises(InputError):
        check_metadata(metadata)


def test_none_in_metadata_is_left_out_and_times_are_turned_to_utc():
    checked = check_metadata({"a": None, "b": "", "c": 1, "timestamp_utc": "2026-05-30T11:00:00+02:00"})
    assert checked == {"b": "", "c": 1, "timestamp_utc": "2026-05-30T09:00:00.000000+00:00"}


@given(st.datetimes(timezones=st.timezones()), st.datetimes(timezones=st.timezones()))
def test_stored_times_sort_as_text_as_they_do_as_times(one, other):
    if one.year in (1, 9999) or other.year in (1, 9999):
        return
    assert (stored_moment(one.isoformat()) < stored_moment(other.isoformat())) == (one < other)


def found(name, score, **metadata):
    return Match(record=Record(id=name, text=name, metadata=metadata), similarity=score)


def order(*engrams, top_k=10, min_score=0.3):
    return [one.record.id for one in rank_engrams(engrams, top_k=top_k, min_score=min_score)]


def test_a_rewarded_engram_overtakes_a_nearer_one_by_a_tenth_of_its_reward():
    engrams = [found("a", 0.82), found("b", 0.78, reward=1.0), found("c", 0.45, reward=1.0)]
    assert [round(effective_score(one), 6) for one in engrams] == [0.82, 0.88, 0.55]
    assert order(*engrams) == ["b", "a", "c"]


def test_of_two_equally_near_the_praised_one_comes_first():
    assert order(found("blamed", 0.5, reward=-1.0), found("praised", 0.5, reward=1.0)) == ["praised", "blamed"]


def test_reward_lifts_nothing_over_the_threshold():
    assert order(found("far", 0.29, reward=1.0), found("near", 0.3)) == ["near"]


def test_reward_beyond_one_counts_as_one():
    assert effective_score(found("a", 0.5, reward=50.0)) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("echo", "fact", "expected"),
    [
        (0.83, 0.80, ["fact", "echo"]),
        (0.85, 0.80, ["fact", "echo"]),
        (0.86, 0.80, ["echo", "fact"]),
        (0.70, 0.80, ["fact", "echo"]),
    ],
)
def test_an_echo_within_five_hundredths_comes_after_a_fact(echo, fact, expected):
    assert order(found("echo", echo, is_recall=True), found("fact", fact)) == expected


def test_a_cosine_of_exactly_the_threshold_is_kept_whatever_float32_made_of_it():
    assert order(found("kept", 0.29999998), found("dropped", 0.2999)) == ["kept"]


def test_equal_scores_come_in_the_order_of_their_ids():
    assert order(found("b", 0.5), found("a", 0.5), found("c", 0.5)) == ["a", "b", "c"]


def turn(name, asked, score, answer="Noted.", **metadata):
    return Match(record=Record(id=name, text=turn_text(asked, answer), metadata=metadata), similarity=score)


@pytest.mark.parametrize("asked", ["Where is the relay?", "Tell me where the relay is.", "Hello! Where's the relay"])
def test_questions_come_after_everything_that_was_told_however_near_they_are(asked):
    echoes = [turn(f"e{n}", asked, 0.99 - n / 100, f"On shelf {n}.", is_recall=True) for n in range(9)]
    told = turn("told", "The relay is on the shelf.", 0.31)
    assert order(*echoes, told, top_k=3) == ["told", "e0", "e1"]


def test_a_question_without_an_answer_comes_last_even_if_no_tool_was_used():
    asked = turn("asked", "Where is the relay?", 0.99, "I don't know: I have no memory of that.")
    assert order(asked, found("told", 0.4)) == ["told", "asked"]
    assert order(turn("asked", "What is 2 + 2?", 0.99, "4."), found("told", 0.4)) == ["asked", "told"]


def test_of_a_turn_that_also_told_something_the_question_does_not_count():
    both = turn("both", "I live in Graz. Where can I buy bread?", 0.9, is_recall=True)
    assert order(both, found("other", 0.5)) == ["both", "other"]


def test_recalls_take_at_most_half_of_the_places_while_there_is_something_first_hand():
    recalls = [turn(f"r{n}", f"Relay {n}, please, as you know it", 0.9, is_recall=True) for n in range(5)]
    own = [found(f"f{n}", 0.4) for n in range(2)]
    assert order(*recalls, *own, top_k=4) == ["r0", "r1", "f0", "f1"]
    assert order(*recalls, own[0], top_k=4) == ["r0", "r1", "r2", "f0"]
    assert order(*recalls, own[0], top_k=1) == ["f0"]


scores = st.floats(min_value=-1, max_value=1, allow_nan=False)
engrams = st.lists(
    st.builds(
        lambda number, score, reward, echo: found(f"{number}", score, reward=reward, is_recall=echo),
        st.integers(),
        scores,
        scores,
        st.booleans(),
    ),
    unique_by=lambda one: one.record.id,
    max_size=8,
)


@given(engrams, scores, st.integers(min_value=1, max_value=10))
def test_the_order_depends_on_nothing_but_the_engrams(some, min_score, top_k):
    forward = rank_engrams(some, top_k=top_k, min_score=min_score)
    assert rank_engrams(some[::-1], top_k=top_k, min_score=min_score) == forward
    assert len(forward) <= top_k
    assert all(one.similarity >= min_score - 1e-6 for one in forward)


def engram(name, asked, answer="Noted.", **metadata):
    return Record(id=name, text=turn_text(asked, answer), metadata=metadata)


def topic(key, content):
    return Record(id=f"topic:ann:{key}", text=content, metadata={"type": "topic", "topic": key})


def went(entry, *engrams):
    found = find_forgotten(entry, engrams)
    return [one.id for one in found.gone[1:]], [one.id for one in found.mentions]


NAME = topic("user.name", "Carla")


def test_turns_that_saved_or_looked_up_the_topic_go_with_it():
    saved = engram("saved", "I am Bo.", topics="user.city user.name")
    other = engram("other", "I am in Graz.", topics="user.named")
    assert went(NAME, saved, other) == (["saved"], [])


def test_an_answer_that_repeated_the_value_goes_and_who_else_mentions_it_is_told():
    echo = engram("echo", "What do you know?", "Your name is Carla.", is_recall=True)
    assert went(NAME, echo, engram("bruni", "Carla Bruni sang.")) == (["echo"], ["bruni"])


def test_a_sentence_goes_wherever_it_was_said_in_other_case_and_marks():
    kids = topic("user.kid", "two kids, Tomas and Lea")
    said = engram("said", "I have TWO kids: Tomas and Lea!")
    assert went(kids, said, engram("lea", "Lea is at school.")) == (["said"], ["lea"])


def test_a_short_common_word_takes_nothing_with_it():
    assert went(topic("user.colour", "blue"), engram("sea", "The sea is blue.", is_recall=True)) == ([], [])


def test_an_engram_takes_with_it_what_quotes_it_and_not_what_only_asked_the_same():
    entry = engram("told", "I have two kids, Tomas and Lea. How are you?")
    echo = engram("echo", "How many kids?", 'You told me: "I have two kids, Tomas and Lea".', is_recall=True)
    assert went(entry, entry, echo, engram("asked", "How are you?")) == (["echo"], [])


def test_a_turn_takes_along_the_topic_whose_value_it_says_and_what_had_to_do_with_it():
    entry = engram("told", "No, Lea is allergic to walnuts. I have a bike.", topics="user.allergy user.name")
    earlier, other = engram("earlier", "Lea is allergic to nuts.", topics="user.allergy"), engram("other", "I am Bo.")
    found = find_forgotten(
        entry, [earlier, entry, other], [NAME, topic("user.allergy", "walnuts"), topic("user.bike", "bike")]
    )
    assert [one.id for one in found.gone] == ["told", "topic:ann:user.allergy", "earlier"]


@given(st.text(), st.text())
def test_an_entry_never_counts_as_what_goes_with_itself(said, answer):
    entry = engram("a", said, answer)
    assert went(entry, entry) == ([], [])
