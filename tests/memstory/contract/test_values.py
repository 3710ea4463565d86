"""Values that are made by the thousand are frozen dataclasses like all the others."""

import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from memstory.contract.values import quick_init


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    name: str
    tags: list[str] = field(default_factory=list)
    score: float | None = None


def test_what_is_made_quickly_has_its_fields_its_defaults_and_its_own_lists():
    one, other = Quick(name="a"), Quick(name="a", score=0.5, tags=["x"])
    assert repr(one) == "Quick(name='a', tags=[], score=None)"
    assert (other.tags, other.score) == (["x"], 0.5)
    assert one.tags is not Quick(name="a").tags
    assert replace(other, score=None, tags=[]) == one != other


def test_what_is_made_quickly_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Quick(name="a").name = "b"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "missing 1 required keyword-only argument: 'name'"),
        ({"name": "a", "nam": 1}, "unexpected keyword argument"),
    ],
)
def test_what_is_made_quickly_refuses_what_its_signature_does_not_have(given, said):
    with pytest.raises(TypeError, match=rf"Quick.__init__\(\) .*{said}"):
        Quick(**given)
    assert str(inspect.signature(Quick)).startswith("(*, name: str, tags: list[str] = <factory>")
