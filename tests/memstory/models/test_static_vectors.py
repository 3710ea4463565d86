"""The embedder that needs no package."""

import hashlib
import math

import pytest

from memstory.contract.errors import SetupError
from memstory.models.static_vectors import DIMENSION, FOLDER, StaticVectors, static_vector
from memstory.targets.embedders import load_embedder


def likeness(one, other):
    return math.fsum(a * b for a, b in zip(static_vector(one), static_vector(other), strict=True))


def test_a_synonym_is_nearer_than_another_word():
    assert likeness("the boat leaves at nine", "the ship departs at 9") > 2 * likeness("the boat leaves", "a tax form")


@pytest.mark.parametrize("text", ["tea", "Ana drinks tea. " * 500])
def test_a_vector_has_length_1_however_long_its_text_is(text):
    vector = static_vector(text)
    assert len(vector) == DIMENSION
    assert math.isclose(math.fsum(value * value for value in vector), 1.0, rel_tol=1e-5)


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_text_without_a_known_token_is_like_nothing(text):
    assert likeness(text, "tea") == 0


async def test_it_is_offered_by_name_and_takes_no_other():
    embedder = load_embedder("static")
    assert isinstance(embedder, StaticVectors)
    assert await embedder.embed(["tea"], "query") == [static_vector("tea")]
    with pytest.raises(SetupError, match="static:large"):
        load_embedder("static:large")


def test_the_files_are_those_that_their_page_names():
    page = FOLDER.joinpath("README.md").read_text("utf-8")
    for name in ("tokens.vocab", "vectors.bin"):
        digest = hashlib.sha256(FOLDER.joinpath(name).read_bytes()).hexdigest()
        assert f"| `{name}` | `{digest}` |" in page
