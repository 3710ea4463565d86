"""What counts as a wish to forget, whom and what it means, and what is cut out of a text."""

import pytest

from memstory_reference.systems.layers.forgetting import (
    drop_values,
    forget_wish,
)
from memstory_reference.text.english.statements import wants_list


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Forget my name please", "my name"),
        ("forget my name, please.", "my name"),
        ("Please forget my name!", "my name"),
        ("Can you forget that I live in Oslo?", "I live in Oslo"),
        ("Could you please forget about my sister?", "my sister"),
        ("Forget what I told you about Ann.", "Ann"),
        ("Please delete my job from your memory.", "my job"),
        ("Forget where I live.", "where I live"),
        ("Forget the rule about emojis", "emojis"),
        ("Forget 1f2e3d4c", "1f2e3d4c"),
        ("Delete my job, please.", "my job"),
        ("Erase what you know about Ann.", "Ann"),
    ],
)
def test_it_is_a_wish_to_forget(said, what):
    assert forget_wish(said).what == what


@pytest.mark.parametrize(
    "said",
    [
        "Forget it.",
        "forget that",
        "Never forget my name.",
        "Don't forget to call Ann.",
        "Forget to call Ann?",
        "I forgot my keys.",
        "I often forget names.",
        "Remove the intro from the letter.",
        "Remove Bob's ladder from the garage.",
        "Delete that file.",
        "What should I forget?",
        "",
        "forget",
    ],
)
def test_it_is_none(said):
    assert forget_wish(said) is None


@pytest.mark.parametrize(
    ("said", "sure"),
    [
        ("Forget everything.", False),
        ("forget everything you know about me", False),
        ("Forget everything for good.", True),
    ],
)
def test_everything_is_forgotten_when_it_is_said_twice(said, sure):
    wish = forget_wish(said)
    assert (wish.everything, wish.sure) == (True, sure)


@pytest.mark.parametrize("said", ["What do you know about me?", "what do you remember", "List my memories!"])
def test_it_asks_for_all_that_is_known(said):
    assert wants_list(said)


@pytest.mark.parametrize("said", ["What do you know about Oslo?", "Do you know Ann?", "What do you remember of Ann?"])
def test_it_asks_for_something_else(said):
    assert not wants_list(said)


def test_only_the_sentences_that_tell_a_value_go():
    text = "My name is Anna. I like tea. Call me Anna Berg!"
    assert drop_values(text, [frozenset({"anna"})]) == "I like tea."
    assert drop_values(text, [frozenset({"oslo"})]) == text


def test_a_value_over_two_sentences_leaves_nothing():
    assert drop_values("It is the blue one. I mean the bicycle.", [frozenset({"blue", "bicycle"})]) == ""
