"""Tokens of every script, and what is compared by them (C-07, C-08, C-17)."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.token_sets import jaccard, token_list, token_recall, token_set


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("我喜欢猫", {"我", "喜", "欢", "猫"}),
        ("我用Python", {"我", "用", "python"}),
        ("ひらがなカナ", set("ひらがなカナ")),
        ("Привет, мир!", {"привет", "мир"}),
        ("고양이를 좋아해", {"고양이를", "좋아해"}),
        ("cafe\u0301", {"café"}),
        ("\uff26\uff35\uff2c\uff2c\u3000width", {"full", "width"}),
        ("STRASSE straße", {"strasse"}),
        ("don't don’t", {"don't"}),
        ("snake_case", {"snake", "case"}),
        ("हिन्दी", {"हिन्दी"}),
        ("'quoted'", {"quoted"}),
        ("…—!", set()),
    ],
)
def test_tokens(text, tokens):
    assert token_set(text) == tokens


@given(st.text())
def test_case_width_and_composition_make_no_difference(text):
    tokens = token_list(text)
    assert token_list(unicodedata.normalize("NFC", text)) == token_list(unicodedata.normalize("NFD", text))
    assert all(tokens)
    assert not any(unicodedata.combining(token[0]) for token in tokens)


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1))
def test_a_text_of_letters_is_never_empty(text):
    assert token_set(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_an_ascii_text_has_the_tokens_that_it_has_beside_a_word_of_other_letters(text):
    assert token_list(text) == token_list(f"é {text}")[1:]


SETS = st.frozensets(st.sampled_from("abcdef"))


@given(SETS, SETS)
def test_both_measures_lie_between_0_and_1(left, right):
    assert 0 <= jaccard(left, right) == jaccard(right, left) <= 1
    assert 0 <= token_recall(left, right) <= 1


def test_token_recall_by_the_worked_number():
    assert token_recall({"boss", "work", "stress"}, {"my", "boss", "is", "terrible", "work"}) == pytest.approx(2 / 3)
    assert token_recall(set(), {"a"}) == 0
