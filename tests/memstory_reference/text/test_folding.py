import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.folding import fold, letters_for_digits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s\u0430f\u0435ty", "safety"),
        ("\u03a1\u0430ssword", "Password"),
        ("\uff50\uff41\uff53\uff53", "pass"),
        ("\U0001d429\U0001d41a\U0001d42c\U0001d42c", "pass"),
        ("p\u200ba\u00adss", "pass"),
        ("\uff14\u0661\u06f1", "411"),
        ("café ñ", "cafe n"),
        ("Straße 10", "Straße 10"),
    ],
)
def test_letters_that_look_alike_are_one(text, expected):
    assert fold(text) == expected


@given(st.text())
def test_folding_twice_changes_nothing_more(text):
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_letters_for_digits_keep_every_place(text):
    assert len(letters_for_digits(text)) == len(text)
