"""Nothing that anybody says may break the stand-in, and every key that it makes is one that a memory takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.contract.models import ChatRequest, Message
from memstory_reference.adapters.offline_chat import OfflineChat
from memstory_reference.text.english.lexicon import attribute_key, sentence_key
from memstory_reference.text.english.statements import Context, read_message, whole_statement

KEY = re.compile(r"(?:user|project|constraint)(?:\.[a-z0-9_]+)+")
WORDS = (  # noqa: SIM905  (words read best as running text)
    "my I we our the name is not never please remember that forget what who when where do does am are preferred "
    "favourite language Elixir 张伟 dog's and , . ? ! 42 don't actually no it now from on in at deadline use tabs"
).split()
sentences = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)


@given(st.text() | sentences)
def test_any_message_is_read_and_every_key_fits_the_grammar(text):
    reading = read_message(
        text,
        Context(last=whole_statement("my name is Ana"), statement="My name is Ana", known={"Bo": ("friend", "Bo")}),
    )
    keys = [fact.topic for fact in reading.facts] + list(reading.question.keys if reading.question else ())
    assert all(KEY.fullmatch(one) for one in keys), keys
    assert all(fact.value for fact in reading.facts)


@given(st.text())
@pytest.mark.parametrize(
    "make",
    [
        lambda text: attribute_key((), text or "x"),
        lambda text: attribute_key(("friend", text), "favourite tea"),
        sentence_key,
        lambda text: sentence_key(text, rule=True),
    ],
)
def test_any_phrase_makes_a_key_that_fits_the_grammar(make, text):
    assert KEY.fullmatch(make(text))


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.text() | sentences), max_size=6))
async def test_any_conversation_gets_a_reply(said):
    reply = await OfflineChat().chat(ChatRequest([Message(role=role, content=content) for role, content in said]))
    assert reply.content
    assert not reply.tool_requests


@pytest.mark.parametrize(
    "text",
    [
        "I like a, " * 900,
        "could you please " * 500,
        "what is my " * 700 + "?",
        "my dog's " * 900,
        "a" * 8_000,
        "actually " * 900,
        "1. 2. " * 1300,
    ],
    ids=lambda text: text[:12],
)
def test_long_messages_are_read(text):
    # Patterns that backtrack without bound would hang here, and the run's own time limit would tell.
    read_message(text, Context())


def test_names_in_other_scripts_have_keys_of_their_own():
    assert attribute_key(("Ольга",), "age") != attribute_key(("Олег",), "age")
    assert attribute_key((), "любимый цвет") == attribute_key((), "Любимый Цвет")


@pytest.mark.parametrize(("name", "key_of_name"), [("Bjørn", "bjorn"), ("Łukasz", "lukasz"), ("Ştefan", "stefan")])
def test_letters_with_marks_stay_in_keys_as_plain_ones(name, key_of_name):
    assert attribute_key((name,), "location") == f"user.{key_of_name}_location"
