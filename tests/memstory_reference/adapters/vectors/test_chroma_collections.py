import pytest

from memstory_reference.adapters.vectors.chroma_collections import name_of
from memstory_reference.errors import InputError


@pytest.mark.parametrize("name", ["", "a", "-ab", "a..b", "a b", "x" * 80, None, {"$ne": ""}], ids=repr)
def test_collection_name_that_chroma_would_refuse_is_refused_first(name):
    with pytest.raises(InputError, match="collection"):
        name_of(name, "ana")


def test_two_owners_never_share_a_name():
    assert name_of("memory", "a") != name_of("memory", "b")
    assert name_of("memory.a", "b") != name_of("memory", "a.b")
