from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.tokens import count_tokens


def test_words_marks_and_ideographs_are_tokens():
    assert [count_tokens(text) for text in ("", " \n", "one two", "it's 3.5!", "我用Python", "ฉันรัก")] == [
        0,
        0,
        2,
        7,
        3,
        2,
    ]


def test_a_run_without_spaces_cannot_pass_a_budget():
    assert count_tokens("a" * 16) == 1
    assert count_tokens("a" * 16_000) == 1_000


@given(st.text(), st.text())
def test_two_texts_apart_are_as_much_as_both(left, right):
    assert count_tokens(f"{left} {right}") == count_tokens(left) + count_tokens(right)


@given(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1))
def test_a_text_that_shows_something_has_a_token(text):
    assert count_tokens(text) >= 1
