"""Steps 1 and 2: a text to its chunks, each with what identifies it."""

from __future__ import annotations

from dataclasses import dataclass

from memstory_reference.input_checks import checked_memory, limits_of
from memstory_reference.systems.pipeline.chunk import Utterance, content_hash
from memstory_reference.systems.pipeline.reading.cleaning import clean
from memstory_reference.systems.pipeline.reading.preference_keys import preference_key
from memstory_reference.systems.pipeline.settings import PipelineSettings
from memstory_reference.text.chunks import split_chunks
from memstory_reference.text.words import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One chunk of a text, with the hash of its content and the key that it would have as a preference."""

    content: str
    content_hash: str
    key: str
    utterance: Utterance


def pieces_of(utterance: Utterance, config: PipelineSettings, counter: TokenCounter) -> list[Piece]:
    """Return the chunks of an utterance, none for a text of nothing but whitespace; InputError for a chunk too long."""
    contents = split_chunks(
        clean(utterance.text),
        max_tokens=config.max_chunk_tokens,
        min_tokens=config.min_chunk_tokens,
        count=counter.count,
    )
    limits = limits_of(config)
    return [_piece(checked_memory(content, limits, "text"), utterance) for content in contents]


def _piece(content: str, utterance: Utterance) -> Piece:
    identity = content_hash(content)
    return Piece(content=content, content_hash=identity, key=preference_key(content, identity), utterance=utterance)
