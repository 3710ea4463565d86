import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.systems.pipeline.compression import summary_by_rules, summary_prompt, usable_summary
from memstory_reference.text.words import count_tokens


def told(contents, most=300):
    return summary_by_rules(contents, max_tokens=most, count=count_tokens)


def test_the_prompt_holds_the_contents_in_order_whatever_braces_they_have():
    assert summary_prompt(["one {session_content}", "{0} two"]) == (
        "Summarize the following conversation into 2-3 sentences capturing key facts,\n"
        "decisions, and topics discussed. Be specific and preserve names, numbers, and\n"
        "technical details. Do not include pleasantries.\n"
        "Conversation:\n"
        "one {session_content}\n"
        "{0} two"
    )


def test_names_and_numbers_outweigh_pleasantries_and_keep_their_order():
    contents = [
        "Good morning!",
        "Ilse moves to Graz on 3 May.",
        "How nice.",
        "We use PostgreSQL 16.",
        "See you.",
        "Bye.",
    ]
    assert "Ilse moves to Graz on 3 May." in told(contents)
    assert "We use PostgreSQL 16." in told(contents)
    assert told(contents).index("Ilse") < told(contents).index("PostgreSQL")


def test_a_summary_has_three_sentences_at_most():
    assert (
        told([f"We met person {number}." for number in range(9)])
        == "We met person 0. We met person 1. We met person 2."
    )


def test_a_reply_that_says_nothing_is_no_summary():
    assert [
        usable_summary(reply, ["We met Ilse."], max_tokens=9, count=count_tokens)
        for reply in ("", " \n", "...", '{"": [[[ ...')
    ] == [""] * 4


@pytest.mark.parametrize(
    ("reply", "is_one"),
    [
        ("Ilse moved to Graz on 3 May.", True),
        ("**They spoke of moving to Graz.**", True),
        ('The user said: "I will move."', True),
        ("Ilse moved to Gr", False),
        ("I'm sorry, but I can't help with that.", False),
        ("Nat\u00fcrlich! Das merke ich mir gern, danke f\u00fcr den Hinweis.", False),
    ],
)
def test_a_summary_is_whole_and_has_something_of_what_it_hides(reply, is_one):
    contents = ["Ilse moves to Graz on 3 May.", "How nice!"]
    assert bool(usable_summary(reply, contents, max_tokens=99, count=count_tokens)) is is_one


def test_a_reply_that_is_too_long_is_cut_at_a_sentence():
    assert (
        usable_summary("One two. Three four. Five six.", ["Four."], max_tokens=6, count=count_tokens)
        == "One two. Three four."
    )


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5), st.integers(8, 50))
def test_rules_always_give_the_same_summary_that_fits(contents, most):
    assert told(contents, most) == told(contents, most)
    assert count_tokens(told(contents, most)) <= most
