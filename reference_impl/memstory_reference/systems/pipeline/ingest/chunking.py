"""Steps 1 and 2: a text to its chunks, each with what identifies it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from memstory_reference.input_checks import checked_memory, limits_of
from memstory_reference.systems.pipeline.chunk import Utterance
from memstory_reference.systems.pipeline.ingest.planning import Piece, Vector
from memstory_reference.systems.pipeline.reading.cleaning import clean
from memstory_reference.systems.pipeline.reading.preference_keys import preference_key
from memstory_reference.systems.pipeline.settings import PipelineConfig
from memstory_reference.text.chunks import split_chunks
from memstory_reference.text.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A part of an utterance before it is embedded."""

    content: str
    content_hash: str
    key: str
    utterance: Utterance

    def with_vector(self, vector: Vector) -> Piece:
        """Return the piece that this becomes."""
        return Piece(
            content=self.content,
            content_hash=self.content_hash,
            key=self.key,
            vector=vector,
            utterance=self.utterance,
        )


def chunks_of(utterance: Utterance, config: PipelineConfig, counter: TokenCounter) -> list[Chunk]:
    """Return the chunks of an utterance, none for a text of nothing but whitespace; InputError for a chunk too long."""
    contents = split_chunks(
        clean(utterance.text),
        max_tokens=config.max_chunk_tokens,
        min_tokens=config.min_chunk_tokens,
        count=counter.count,
    )
    limits = limits_of(config)
    return [_chunk(checked_memory(content, limits, "text"), utterance) for content in contents]


def content_hash(content: str) -> str:
    """Return what identifies a content: two contents of one hash are the same text."""
    return blake2b(content.encode("utf-8"), digest_size=20).hexdigest()


def _chunk(content: str, utterance: Utterance) -> Chunk:
    identity = content_hash(content)
    return Chunk(content=content, content_hash=identity, key=preference_key(content, identity), utterance=utterance)
