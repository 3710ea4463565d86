from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory_reference.adapters.embedding.prefixes import NO_PREFIXES, profile_of, sent_texts
from memstory_reference.ports import Purpose

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too


@pytest.mark.parametrize("model", ["nomic-embed-text", "nomic-embed-text:latest", "someone/nomic-embed-text:v1.5"])
def test_nomic_has_prefixes_under_every_tag(model):
    sent = (
        sent_texts(profile_of(model), ["Elixir"], Purpose.DOCUMENT),
        sent_texts(profile_of(model), ["?"], Purpose.QUERY),
    )
    assert sent == (["search_document: Elixir"], ["search_query: ?"])


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "all-minilm:latest", "unheard-of", ""])
def test_other_models_have_none(model):
    assert (profile_of(model).document, profile_of(model).query) == ("", "")


@pytest.mark.parametrize(
    ("model", "floor"),
    [
        ("nomic-embed-text", 0.3),
        ("nomic-embed-text:v1.5", 0.3),
        ("all-MiniLM-L6-v2", 0.2),
        ("sentence-transformers/all-MiniLM-L6-v2", 0.2),
        ("all-minilm:latest", 0.2),
        ("unheard-of", 0.3),
        ("", 0.3),
    ],
)
def test_minilm_has_a_floor_of_its_own_and_a_model_that_is_not_known_that_of_the_description(model, floor):
    assert profile_of(model).min_score == floor


def test_text_that_starts_with_a_prefix_gets_another():
    sent = profile_of("nomic-embed-text").model_input("search_query: x", Purpose.QUERY)
    assert sent == "search_query: search_query: x"


def test_surrogate_pair_is_joined_and_a_lone_one_replaced():
    assert NO_PREFIXES.model_input("\ud83d\ude00 \ud83d", Purpose.QUERY) == "😀 \ufffd"


@given(ANY_TEXT, st.sampled_from(Purpose))
def test_what_is_sent_can_always_be_encoded(text, purpose):
    sent = profile_of("nomic-embed-text").model_input(text, purpose)
    assert sent.encode()
    if text.isprintable():
        assert sent.endswith(text)
