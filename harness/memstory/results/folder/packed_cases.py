"""The cases of a packed file: each is written as its difference from an earlier case of the same story.

Many memories find the same and fail for the same reason, so that a comparison of twenty takes half of the room.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memstory.contract.target import Tree

PACKED_SCHEMA: Final = "memstory.packed/1"


def pack(cases: Sequence[Tree]) -> list[Tree]:
    """Return each case as `[how many cases back, difference from that one]`; 0 back is nothing.

    >>> pack([{"story": "S1", "outcome": "passed"}, {"story": "S1", "outcome": "failed"}])
    [[0, [{'story': 'S1', 'outcome': 'passed'}]], [1, {'outcome': ['failed']}]]
    """
    earlier: dict[tuple[str, str | None], list[int]] = {}
    packed: list[Tree] = []
    for place, case in enumerate(cases):
        same = earlier.setdefault((case["story"], case.get("row")), [])
        ways = [[place - one, difference(cases[one], case)] for one in same]
        best = min(ways, key=lambda way: len(json.dumps(way)), default=None)
        # Python takes True and 1 for the same, and a file does not.
        is_exact = best is not None and _text(changed(cases[place - best[0]], best[1])) == _text(case)
        packed.append(best if is_exact else [0, [case]])
        same.append(place)
    return packed


def unpack(packed: Sequence[Tree]) -> Iterator[Tree]:
    """Yield the cases of which `pack` made this.

    Raises:
        ValueError, TypeError, LookupError: nothing that `pack` makes.
    """
    cases: list[Tree] = []
    for back, change in packed:
        cases.append(changed(cases[-back] if back else None, change))
        yield cases[-1]


def difference(old: Tree, new: Tree) -> Tree:
    """Return what makes `new` of `old`: the parts of a mapping or a list that changed, or `[new]`; `[]` takes away."""
    if isinstance(old, dict) and isinstance(new, dict):
        gone: dict[str, Tree] = {name: [] for name in old if name not in new}
        return gone | {
            name: difference(old[name], value) if name in old else [value]
            for name, value in new.items()
            if name not in old or old[name] != value
        }
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return {str(place): difference(was, now) for place, (was, now) in pairs if was != now}
    return [new]


def changed(old: Tree, change: Tree) -> Tree:
    """Return the `new` of which `difference(old, new)` is `change`.

    >>> changed({"a": [1, 2], "b": 3}, difference({"a": [1, 2], "b": 3}, {"a": [1, 5]}))
    {'a': [1, 5]}
    """
    if isinstance(change, list):
        (new,) = change
        return new
    if isinstance(old, list):
        return [changed(one, change[str(place)]) if str(place) in change else one for place, one in enumerate(old)]
    gone = {name for name, inner in change.items() if inner == []}
    kept: Mapping[str, Tree] = {name: value for name, value in old.items() if name not in gone}
    return {**kept, **{name: changed(old.get(name), inner) for name, inner in change.items() if name not in gone}}


def _text(tree: Tree) -> str:
    return json.dumps(tree, sort_keys=True)
