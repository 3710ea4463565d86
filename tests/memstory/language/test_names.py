"""Saved names, into steps and out of results."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.errors import StoryError
from memstory.language.names import pick, substitute

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab {}", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(TREES)
def test_a_tree_without_references_stays_as_it_is(tree):
    assert substitute(tree, {"a": 1}) == tree


@given(TREES.filter(lambda tree: tree is not None))
def test_a_whole_reference_becomes_the_saved_value_with_its_type(value):
    assert substitute(["${x}"], {"x": value}) == [value]


def test_a_name_that_nobody_saved_is_the_storys_mistake():
    with pytest.raises(StoryError, match="'gone'"):
        substitute("see ${gone}", {})


@pytest.mark.parametrize(
    ("path", "found"),
    [("", {"items": [{"id": "a"}], "n": 0}), ("items.0.id", "a"), ("items.1.id", None), ("n", 0), ("n.x", None)],
)
def test_a_path_leads_into_a_result_or_to_nothing(path, found):
    assert pick({"items": [{"id": "a"}], "n": 0}, path) == found
