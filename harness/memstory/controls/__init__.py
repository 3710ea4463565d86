"""Targets that test whether a story or a number proves anything; select one as `control:NAME`, or `control:all`.

The oracle is a perfect small memory that every story must allow. The baselines do without a memory's work: a story that
they pass does not discriminate. Each mutant is the oracle with one fault, which stories must find: five have a broad
fault, which touches all that they do, and the many in `faults` a narrow one. `CONTROLS` has the factory of each control
by the name behind `control:`; `BASELINES`, `MUTANTS`, `BROAD` and `FAULTS` have those of one kind. An adapter's own
tests can subclass `Oracle` and `OracleFactory`.
"""

from __future__ import annotations

from collections.abc import Mapping

from memstory.contract.target import TargetFactory
from memstory.controls import mutants
from memstory.controls.baselines import BASELINES
from memstory.controls.faults import FAULTS
from memstory.controls.oracle import Oracle, OracleFactory

__all__ = ["BASELINES", "BROAD", "CONTROLS", "FAULTS", "MUTANTS", "Oracle", "OracleFactory"]

BROAD: Mapping[str, type[TargetFactory]] = mutants.factories_in(mutants)
MUTANTS: Mapping[str, type[TargetFactory]] = {**BROAD, **FAULTS}
CONTROLS: Mapping[str, type[TargetFactory]] = {**BASELINES, "oracle": OracleFactory, **MUTANTS}
