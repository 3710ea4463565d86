import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.sentences import (
    clause_units,
    is_no_answer,
    letter_units,
    line_units,
    sentence_units,
    sentences,
    tells_nothing,
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


@pytest.mark.parametrize(
    "text",
    [
        "What is the code name?",
        "what's my name",
        "Which of the two did I pick",
        "Tell me where the relay is.",
        "Do you know my city",
        "I was wondering where my keys are.",
        "List my hobbies.",
        "Wie hei\u00dfe ich?",
        "\u79c1\u306e\u540d\u524d\u306f\uff1f",
        "Hi there! And what is my name?",
        "Thanks, you're great!",
        "",
    ],
)
def test_who_only_asks_or_greets_tells_nothing(text):
    assert tells_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Graz.",
        "I live in Graz. Where is the station?",
        "What I like is tea.",
        "When I was five, we moved to Linz.",
        "Tell me that later: the gate code is on the fridge.",
        "Have a look, the relay is Plimquart.",
        "The relay goes by Plimquart",
        "Ich wohne in Wien.",
        "asdkjh asd",
    ],
)
def test_who_says_something_tells_something(text):
    assert not tells_nothing(text)


@pytest.mark.parametrize("text", ["I don't know.", "I do not know: no memory.", "I have no memory of that."])
def test_an_answer_may_say_that_there_is_none(text):
    assert is_no_answer(text)
    assert not is_no_answer(f"You said: {text}")


@given(st.text())
def test_any_text_tells_something_or_nothing(text):
    assert tells_nothing(f"{text}\n\nIs it so?") == tells_nothing(text)
