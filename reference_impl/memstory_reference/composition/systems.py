"""The six memories by name. Every face goes through here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memstory.contract.texts import did_you_mean
from memstory_reference.composition.declaration import MemorySystem
from memstory_reference.composition.layers import LAYERS
from memstory_reference.composition.manager import MANAGER
from memstory_reference.composition.observations import OBSERVATIONS
from memstory_reference.composition.pipeline import PIPELINE
from memstory_reference.composition.topics import TOPICS
from memstory_reference.composition.turns import TURNS
from memstory_reference.errors import InputError

SYSTEMS: Final[Mapping[str, MemorySystem]] = {
    one.name: one for one in (TOPICS, OBSERVATIONS, PIPELINE, LAYERS, MANAGER, TURNS)
}


def system_named(name: str) -> MemorySystem:
    """Return the memory of this name; InputError if there is none."""
    if name not in SYSTEMS:
        raise InputError(
            f"there is no memory {name!r:.40}.{did_you_mean(name, SYSTEMS)} There are: {', '.join(SYSTEMS)}"
        )
    return SYSTEMS[name]
