"""The observations memory as a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from memstory.contract.target import Tree
from memstory_reference.composition.observations import OBSERVATIONS
from memstory_reference.setting_rules import CHROMA
from memstory_reference.targets.system_target import SystemFactory, SystemTarget


class ObservationsTarget(SystemTarget):
    """One memory of observations; both indexes are in the case's workspace, or in its schemas."""

    system = OBSERVATIONS


class ObservationsFactory(SystemFactory):
    """The observations memory: what finished runs left behind, ranked by likeness and quality."""

    name = "observations"
    target_class = ObservationsTarget


class ObservationsChromaFactory(ObservationsFactory):
    """The observations memory with its vectors in Chroma's own persistence."""

    name = "observations-chroma"
    usual_options: ClassVar[Mapping[str, Tree]] = {"store": CHROMA}
