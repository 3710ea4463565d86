"""Who does which case, when several machines share a run."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstory.pytest_plugin.sharded import part_of
from memstory.pytest_plugin.sharding import Shard, parse_shard, places_in

KEYS = st.lists(st.tuples(st.sampled_from(["retrieval", "steps"]), st.text(max_size=3)), max_size=40)


@given(KEYS, st.integers(1, 60))
def test_every_case_is_in_exactly_one_shard_and_shards_are_even(keys, count):
    parts = [places_in(Shard(number=number, count=count), keys) for number in range(1, count + 1)]
    assert Counter(place for part in parts for place in part) == Counter(range(len(keys)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.sets(st.text(max_size=4), max_size=30), st.integers(1, 9), st.randoms())
def test_who_does_what_does_not_depend_on_the_order_of_collection(names, count, random):
    keys = [(name,) for name in names]
    shuffled = random.sample(keys, len(keys))
    shard = Shard(number=count, count=count)
    assert {keys[place] for place in places_in(shard, keys)} == {
        shuffled[place] for place in places_in(shard, shuffled)
    }
    assert part_of(shard, keys) == part_of(shard, shuffled)


def test_what_is_alike_is_spread_over_all_shards():
    keys = [(kind, str(number)) for kind in ("retrieval", "steps") for number in range(6)]
    for number in (1, 2, 3):
        own = [keys[place][0] for place in places_in(Shard(number=number, count=3), keys)]
        assert Counter(own) == {"retrieval": 2, "steps": 2}


def test_another_selection_has_another_digest():
    shard = Shard(number=1, count=2)
    assert part_of(shard, [("a",), ("b",)]).digest != part_of(shard, [("a",), ("c",)]).digest


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "a/b", "-1/2", "1/2/3", "", " 1/2", "\u0661/\u0662"])
def test_what_is_no_shard_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"is no shard: say which of how many.*such as 2/5"):
        parse_shard(text)
