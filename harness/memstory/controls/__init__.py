"""Targets that test whether a story or a number proves anything; select one as `control:NAME`.

The oracle is a perfect small memory that every story must allow. The baselines do without a memory's work: a story that
they pass does not discriminate. Each mutant is the oracle with one fault, which stories must find.
"""

from __future__ import annotations

from collections.abc import Mapping

from memstory.contract.target import TargetFactory
from memstory.controls.baselines import EverythingFactory, GrepFactory, NothingFactory, RandomFactory
from memstory.controls.faults import FAULTS
from memstory.controls.mutants import Amnesiac, Duplicating, Leaky, Stale, Undeleting, factory_of
from memstory.controls.oracle import Oracle, OracleFactory

__all__ = [
    "BASELINES",
    "BROAD",
    "CONTROLS",
    "FAULTS",
    "MUTANTS",
    "EverythingFactory",
    "GrepFactory",
    "NothingFactory",
    "Oracle",
    "OracleFactory",
    "RandomFactory",
]

BASELINES: Mapping[str, type[TargetFactory]] = {
    "nothing": NothingFactory,
    "random": RandomFactory,
    "grep": GrepFactory,
    "everything": EverythingFactory,
}
"""Memories that do none of the work."""

BROAD: Mapping[str, type[TargetFactory]] = {
    mutant.fault_name: factory_of(mutant) for mutant in (Amnesiac, Leaky, Stale, Undeleting, Duplicating)
}
"""The oracle with one fault each that touches all it does."""

MUTANTS: Mapping[str, type[TargetFactory]] = {**BROAD, **FAULTS}
"""The oracle with one fault each."""

CONTROLS: Mapping[str, type[TargetFactory]] = {**BASELINES, "oracle": OracleFactory, **MUTANTS}
"""By the name behind `control:`."""
