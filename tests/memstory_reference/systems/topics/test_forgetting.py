from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.topics.engrams import EngramEntry, TopicEntry, turn_text
from memstory_reference.systems.topics.forgetting import find_forgotten


def engram(name, asked, answer="Noted.", **metadata):
    return EngramEntry(id=name, content=turn_text(asked, answer), metadata=metadata)


def topic(key, content):
    return TopicEntry(id=f"topic:ann:{key}", topic=key, content=content, timestamp_utc="")


def went(entry, *engrams):
    found = find_forgotten(entry, engrams)
    return [one.id for one in found.engrams], [one.id for one in found.mentions]


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
    assert [one.topic for one in found.topics] == ["user.allergy"]
    assert [one.id for one in found.engrams] == ["earlier"]


@given(st.text(), st.text())
def test_an_entry_never_counts_as_what_goes_with_itself(said, answer):
    entry = engram("a", said, answer)
    found = find_forgotten(entry, [entry])
    assert (found.engrams, found.mentions) == ([], [])
