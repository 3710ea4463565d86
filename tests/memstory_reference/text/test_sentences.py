import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.sentences import (
    clause_units,
    letter_units,
    line_units,
    sentence_units,
    sentences,
    word_units,
)

TEXTS = st.text(st.sampled_from("aB .!?,;\n\t。é\u0301\u200d語")) | st.text()


@pytest.mark.parametrize("units", [sentence_units, clause_units, word_units, letter_units, line_units])
@given(text=TEXTS)
def test_units_join_to_the_text(units, text):
    assert "".join(units(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He said hi! ok. 3.5 is it? Yes.", ["He said hi! ok. 3.5 is it? ", "Yes."]),
        ("Dr. Smith met J. Doe. Both left.", ["Dr. Smith met J. Doe. ", "Both left."]),
        ("So do I. Then we left.", ["So do I. ", "Then we left."]),
        ("Use e.g. Python. Or not.", ["Use e.g. Python. ", "Or not."]),
        ("C'est fini. Élise part.", ["C'est fini. ", "Élise part."]),
        ("no capital. here", ["no capital. here"]),
        ("Really?!  Yes", ["Really?!  ", "Yes"]),
    ],
)
def test_a_sentence_ends_at_a_mark_a_space_and_a_capital(text, expected):
    assert sentence_units(text) == expected


def test_a_letter_keeps_its_marks_as_long_as_they_are_few():
    assert letter_units("e\u0301x") == ["e\u0301", "x"]
    assert max(map(len, letter_units("e" + "\u0301" * 100))) <= 8


def test_lines_are_sentences_too():
    assert sentences("One. Two.\n\n- three") == ["One.", "Two.", "- three"]
