import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.text.asking import is_no_answer, tells_nothing


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
