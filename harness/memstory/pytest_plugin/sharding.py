"""One part of a run that several machines share: which cases are whose follows from the cases alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int


def parse_shard(text: str) -> Shard:
    """Return the shard that `2/5` names.

    >>> parse_shard("2/5")
    Shard(number=2, count=5)
    """
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError(f"'{text}' is no shard: say which of how many, from 1/1 on, such as 2/5")
    return Shard(number=int(found[1]), count=int(found[2]))


def places_in(shard: Shard, cases: Sequence[tuple[str, ...]]) -> set[int]:
    """Return the places of the shard's own cases.

    Cases are dealt out one by one in the order of their keys, so that those whose keys begin alike (of one target, say)
    are spread over all shards, and no shard has more than one case more than another.
    """
    order = sorted(range(len(cases)), key=lambda place: cases[place])
    return set(order[shard.number - 1 :: shard.count])
