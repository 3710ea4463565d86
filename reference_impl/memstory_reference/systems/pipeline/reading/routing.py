"""Step 5: which type of memory a chunk is; the first rule that holds decides (P-11)."""

from __future__ import annotations

from memstory_reference.systems.pipeline.chunk import ChunkType
from memstory_reference.systems.pipeline.reading.detectors import Detectors
from memstory_reference.text.fences import prose


def memory_type_of(text: str, detectors: Detectors, *, is_from_user: bool = True) -> ChunkType:
    """Return the type of a chunk that came without a hint; only a statement of a preference is procedural.

    >>> [memory_type_of(text, Detectors()).value for text in ("I prefer tabs right now", "We talked about the trip")]
    ['procedural', 'episodic']
    """
    said = prose(text)
    if is_from_user and detectors.statement(said):
        return ChunkType.PROCEDURAL
    if detectors.present(said):
        return ChunkType.WORKING
    if detectors.fact(said):
        return ChunkType.SEMANTIC
    return ChunkType.EPISODIC
