import doctest
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from memstory.contract import codec
from memstory.contract.codec import Misfit, decode, encode, encode_lean


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    name: str
    size: float = 0.0
    kind: Literal["a", "b"] = "a"
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    leaves: Sequence[Leaf] = ()
    by_name: Mapping[str, Leaf] = field(default_factory=dict)
    top: Leaf | None = None


TREE = Tree(leaves=(Leaf(name="x", size=1.5, tags=("t",)), Leaf(name="y")), by_name={"z": Leaf(name="z", kind="b")})


def test_doctests_hold():
    assert doctest.testmod(codec).failed == 0


@pytest.mark.parametrize("form", [encode, encode_lean])
def test_what_is_encoded_is_decoded_as_the_same(form):
    assert decode(Tree, json.loads(json.dumps(form(TREE)))) == TREE


def test_lean_leaves_out_what_is_empty_and_may_be():
    assert encode_lean(Tree(top=Leaf(name=""))) == {"top": {"name": "", "size": 0.0, "kind": "a"}}
    assert encode_lean(Tree(leaves=(Leaf(name="x", tags=("t",)),))) == {
        "leaves": [{"name": "x", "size": 0.0, "kind": "a", "tags": ["t"]}]
    }


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"leaves": [{"name": "x"}, {"name": 5}]}, "leaves[1].name: 5 is not a text"),
        ({"by_name": {"z": {"name": "z", "kind": "c"}}}, "by_name.z.kind: 'c' is none of 'a', 'b'"),
        ({"top": {"size": 1}}, "top: name is missing"),
        ({"top": {"name": "x", "size": "1"}}, "top.size: '1' is not a number"),
        ({"leaves": {"name": "x"}}, "leaves: {'name': 'x'} is not a list"),
        ({"colour": 1}, "Tree has no colour"),
        ([], "[] is not a mapping"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(data, said):
    with pytest.raises(Misfit) as caught:
        decode(Tree, data)
    assert str(caught.value) == said


@pytest.mark.parametrize("word", ["nan", "inf", "-inf"])
def test_numbers_that_json_lacks_are_read_from_their_words(word):
    assert str(decode(Leaf, {"name": "x", "size": word}).size) == word
