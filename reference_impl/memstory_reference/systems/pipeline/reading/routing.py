"""Step 5: which type of memory a chunk is; the first rule that holds decides (P-11)."""

from __future__ import annotations

from memstory_reference.systems.pipeline.memory import MemoryType
from memstory_reference.systems.pipeline.reading.detectors import Detectors
from memstory_reference.text.fences import prose


def route(text: str, detectors: Detectors, *, is_from_user: bool = True) -> MemoryType:
    """Return the type of a chunk that came without a hint; only a statement of a preference is procedural.

    >>> route("I prefer tabs right now", Detectors()).value, route("We talked about the trip", Detectors()).value
    ('procedural', 'episodic')
    """
    said = prose(text)
    if is_from_user and detectors.statement(said):
        return MemoryType.PROCEDURAL
    if detectors.present(said):
        return MemoryType.WORKING
    if detectors.fact(said):
        return MemoryType.SEMANTIC
    return MemoryType.EPISODIC
