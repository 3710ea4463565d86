"""Explores a memory with programs that nobody wrote: draws operations, compares with a model, and shrinks to stories.

`search` explores a target and returns what it found; `explore` does so in a test and fails with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from memstory.contract.target import Tree
from memstory.exploring.search import Breach, Exploration, Limits, search
from memstory.targets.discovery import factory_of

__all__ = ["Breach", "Exploration", "Limits", "explore", "record", "search", "stories"]


def explore(
    memory: Any,
    *,
    seconds: float = 20.0,
    examples: int | None = None,
    seed: int = 0,
    options: Mapping[str, Tree] | None = None,
    known: Collection[str] = (),
) -> Exploration:
    """Explore a memory for some seconds, as a test; return what was done. `known` has names of findings to pass over.

    `memory` is a `TargetFactory`, its class, a class of your own with methods such as `add` and `search`, or an object.

    Raises:
        AssertionError: a promise was broken; the message has each cause with the story that shows it.
        SetupError: nothing can be stored in the memory, or nothing that is stored can be seen.
    """
    named = memory if isinstance(memory, type) else type(memory)
    made = factory_of(f"{named.__module__}:{named.__qualname__}", memory)
    limits = Limits(seconds=seconds, examples=examples)
    found = asyncio.run(search(made, options=options, seed=seed, limits=limits))
    new = [one for one in found.findings if one.name not in known]
    if new:
        raise AssertionError(
            "\n\n".join(f"{one.harm}: {one.title}\n{one.says}\n({one.name})\n{one.story}" for one in new)
        )
    return found
