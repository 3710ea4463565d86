from __future__ import annotations

import math

import numpy as np
import pytest

from memstory_reference.adapters.embedding.fixed_vectors import FixedVectors
from memstory_reference.adapters.embedding.prefixes import profile_of
from memstory_reference.composition.embedders import RANDOM, make_embedder
from memstory_reference.errors import InputError, UnknownTextError
from memstory_reference.ports import Purpose


async def test_numbers_of_length_1_come_out_as_typed():
    # H-10
    fixed = FixedVectors({"near": [0.9, 0.43588989], "axis": [1, 0]})
    near, axis = await fixed.embed(["near", "axis"], Purpose.DOCUMENT)
    assert (near.tolist(), float(near @ axis)) == ([np.float32(0.9), np.float32(0.43588989)], np.float32(0.9))


async def test_other_numbers_are_brought_to_length_1():
    vectors = await FixedVectors({"a": [3, 4], "b": [1e-30, 0]}).embed(["a", "b"], Purpose.QUERY)
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [1, 0]], rtol=1e-6)


async def test_unknown_text_is_named_with_the_nearest_and_the_remedy():
    with pytest.raises(UnknownTextError, match=r"'databses'.*`vectors:`.*'databases'"):
        await FixedVectors({"databases": [1]}).embed(["databses"], Purpose.QUERY)


async def test_raw_text_is_found_under_a_profile_with_prefixes():
    fixed = FixedVectors({"Elixir": [1, 0]}, profile=profile_of("nomic-embed-text"))
    assert (await fixed.embed(["Elixir"], Purpose.DOCUMENT)).tolist() == [[1, 0]]


async def test_text_with_its_prefix_serves_that_purpose_alone():
    table = {"Elixir": [1, 0], "search_query: Elixir": [0, 1]}
    fixed = FixedVectors(table, profile=profile_of("nomic-embed-text"))
    assert (await fixed.embed(["Elixir"], Purpose.DOCUMENT)).tolist() == [[1, 0]]
    assert (await fixed.embed(["Elixir"], Purpose.QUERY)).tolist() == [[0, 1]]


async def test_model_says_the_dimension():
    fixed = FixedVectors({"a": [1, 0, 0]})
    assert (fixed.model, fixed.dimension) == ("fixed-3", 3)
    assert (await fixed.embed([], Purpose.QUERY)).shape == (0, 3)


@pytest.mark.parametrize("numbers", [[], [math.nan, 1], [math.inf, 1]])
def test_what_is_no_finite_number_is_refused(numbers):
    with pytest.raises(InputError, match="'a' needs finite numbers"):
        FixedVectors({"a": numbers})


async def test_zeros_stay_for_the_memory_to_judge_as_a_model_may_answer_with_them():
    assert (await FixedVectors({"a": [0, 0]}).embed(["a"], Purpose.QUERY)).tolist() == [[0.0, 0.0]]


def test_vectors_of_two_sizes_are_refused():
    with pytest.raises(InputError, match="'b' has 1 numbers, the first text has 2"):
        FixedVectors({"a": [1, 0], "b": [1]})


def test_empty_table_is_refused():
    with pytest.raises(InputError, match="at least one"):
        FixedVectors({})


@pytest.fixture
def by_chance():
    return make_embedder(RANDOM, ollama_host="http://127.0.0.1:1")


async def test_a_text_has_the_same_vector_every_time_whatever_it_is_for(by_chance):
    first = await by_chance.embed(["tea", "rain", "tea"], Purpose.DOCUMENT)
    again = await by_chance.embed(["tea"], Purpose.QUERY)
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], first[1])


async def test_vectors_have_length_one_and_half_a_surrogate_pair_has_one_too(by_chance):
    vectors = await by_chance.embed(["", "tea", "\ud800"], Purpose.DOCUMENT)
    assert vectors.shape == (3, by_chance.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert by_chance.model == "random-384"
