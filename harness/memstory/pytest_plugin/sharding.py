"""`--shard 2/5`: of all stories that were selected, those that this run is to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

import pytest

from memstory.contract.codec import decode, encode
from memstory.contract.target import Tree
from memstory.pytest_plugin.items import InvalidItem, StoryItem
from memstory.pytest_plugin.options import Shard
from memstory.pytest_plugin.session import INSTEAD, LEFT, SELECTED, begin, is_worker, state_of
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Part

_OUTPUT: Final = "memstory_shard"


def deselect_others(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the shard's own stories among `items`; tests that are not stories stay, in every shard."""
    shard: Shard = config.getoption("memstory_shard")
    ours = [item for item in items if isinstance(item, (StoryItem, InvalidItem))]
    keys = [_key(item) for item in ours]
    own = places_in(shard, keys)
    part = part_of(shard, keys)
    if is_worker(config):
        config.workeroutput[_OUTPUT] = encode(part)  # type: ignore[attr-defined]  # of xdist
    else:
        state_of(config).shard = part
    others = [item for place, item in enumerate(ours) if place not in own]
    left_out = set(others)
    items[:] = [item for item in items if item not in left_out]
    if others:
        config.hook.pytest_deselected(items=others)


def hear_worker(config: pytest.Config, output: Mapping[str, Tree]) -> None:
    """Take from a worker of xdist what only it knows: the process that writes the report runs nothing itself."""
    state = state_of(config)
    state.left += output.get(LEFT, [])
    state.instead = output.get(INSTEAD) or state.instead
    state.selected = decode(Sequence[CaseResult], output.get(SELECTED, [])) or state.selected
    if _OUTPUT not in output:
        return
    state.shard = decode(Part, output[_OUTPUT])
    if not state.begun:
        # A shard may have no case at all; its report says so.
        begin(config)


def places_in(shard: Shard, cases: Sequence[tuple[str, ...]]) -> set[int]:
    """Return the places of the shard's own cases.

    Cases are dealt out one by one in the order of their keys, so that those whose keys begin alike (of one target, say)
    are spread over all shards, and no shard has more than one case more than another.
    """
    order = sorted(range(len(cases)), key=lambda place: cases[place])
    return set(order[shard.number - 1 :: shard.count])


def part_of(shard: Shard, cases: Sequence[tuple[str, ...]]) -> Part:
    """Return what `shard` has of `cases`."""
    digest = blake2b(repr(sorted(cases)).encode(), digest_size=16).hexdigest()
    own = len(places_in(shard, cases))
    return Part(number=shard.number, count=shard.count, cases=own, of=len(cases), digest=digest)


def _key(item: StoryItem | InvalidItem) -> tuple[str, ...]:
    # Retrieval tasks are long: they are dealt out by themselves, target by target, as the steps are.
    if isinstance(item, InvalidItem):
        return ("invalid", "", _name(item))
    story = item.case.story
    # With its text: shards of two versions of a story are not of one run.
    return ("retrieval" if story.retrieval else "steps", item.case.target, _name(item), story.digest)


def _name(item: StoryItem | InvalidItem) -> str:
    if item.path.is_relative_to(item.config.rootpath):
        return item.nodeid
    # Machines may have memstory, and the stories that it brings, in different places.
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"
