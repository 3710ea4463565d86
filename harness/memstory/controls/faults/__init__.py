"""The oracle with one narrow fault each, taken from public bug reports. Fault stories are written against these.

There is a module for each promise of a memory that they break. `FAULTS` has the factory of each by the name behind
`control:`, in the order in which the faults are written.
"""

from __future__ import annotations

from collections.abc import Mapping

from memstory.controls.faults import (
    changes,
    conditions,
    correcting,
    durability,
    edges,
    forgetting,
    jobs,
    owners,
    resisting,
    returning,
    searching,
    texts,
    upgrade,
    writes,
)
from memstory.controls.mutants import MutantFactory, factories_in

__all__ = ["FAULTS"]

FAULTS: Mapping[str, type[MutantFactory]] = factories_in(
    owners,
    writes,
    changes,
    texts,
    searching,
    durability,
    forgetting,
    returning,
    correcting,
    resisting,
    edges,
    conditions,
    upgrade,
    jobs,
)
