"""What an embedding model is known to need: what is put before a text, how near is near enough, vectors of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from memstory_reference.ports import Embedder, Purpose, Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The prefixes of an embedding model, and the cosine below which a text hardly ever answers a query."""

    document: str = ""
    query: str = ""
    min_score: float = 0.3

    def model_input(self, text: str, purpose: Purpose) -> str:
        """Return what the model gets: the prefix and the text, in valid Unicode.

        A text that happens to start with a prefix gets another: what a user wrote is never taken for an instruction.

        >>> profile_of("nomic-embed-text").model_input("databases", Purpose.QUERY)
        'search_query: databases'
        """
        prefix = self.document if purpose is Purpose.DOCUMENT else self.query
        return prefix + _valid(text)


class ProfiledEmbedder(Embedder, Protocol):
    """An embedder that tells its profile: a log or a cache above it knows what is really sent, a memory its floor."""

    profile: Profile


NO_PREFIXES = Profile()

# https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 "Task instruction prefixes"; Ollama's embed call adds none.
_NOMIC = Profile(document="search_document: ", query="search_query: ")
# At .3 a right turn in nine of LoCoMo would be lost, at .2 one in fifty: docs/explanation/topics.md.
_MINILM = Profile(min_score=0.2)
# Ollama has all-MiniLM-L6-v2 as all-minilm.
_PROFILES = {"nomic-embed-text": _NOMIC, "all-MiniLM-L6-v2": _MINILM, "all-minilm": _MINILM}


def profile_of(model: str) -> Profile:
    """Return the profile of `model`, whatever its tag; one that is not known has no prefixes, and the usual floor.

    >>> profile_of("nomic-embed-text:v1.5") == profile_of("nomic-embed-text")
    True
    >>> profile_of("unheard-of") == NO_PREFIXES
    True
    """
    name = model.rpartition("/")[2].partition(":")[0]
    return _PROFILES.get(name, NO_PREFIXES)


def sent_texts(profile: Profile, texts: Sequence[str], purpose: Purpose) -> list[str]:
    """Return what is sent for each of `texts`."""
    return [profile.model_input(text, purpose) for text in texts]


def unit_vectors(rows: Sequence[Sequence[float]], count: int, dimension: int | None) -> Vectors:
    """Return what a server gave for `count` texts, at length 1; ValueError says what is wrong with it."""
    if len(rows) != count:
        raise ValueError(f"it gave {len(rows)} embeddings for {count} texts")
    sizes = {len(numbers) for numbers in rows}
    expected = dimension or min(sizes)
    if sizes != {expected}:
        found = " and ".join(map(str, sorted(sizes)))
        raise ValueError(f"its embeddings have {found} numbers where {expected} were expected")
    vectors = np.array(rows, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise ValueError("an embedding is all zeros or not finite")
    return np.asarray(vectors / lengths, dtype=np.float32)


def _valid(text: str) -> str:
    # Lone surrogates come from broken JSON and cannot be encoded; tokenizers and HTTP clients raise on them.
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
