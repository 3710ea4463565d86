"""What is put before a text for the model that embeds it: callers say why they embed, the model's profile says how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memstory_reference.ports import Embedder, Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The prefixes of an embedding model."""

    document: str = ""
    query: str = ""

    def sent(self, text: str, purpose: Purpose) -> str:
        """Return what the model gets: the prefix and the text, in valid Unicode.

        A text that happens to start with a prefix gets another: what a user wrote is never taken for an instruction.

        >>> profile_of("nomic-embed-text").sent("databases", Purpose.QUERY)
        'search_query: databases'
        """
        prefix = self.document if purpose is Purpose.DOCUMENT else self.query
        return prefix + _valid(text)


class ProfiledEmbedder(Embedder, Protocol):
    """An embedder that tells its profile, so that a log or a cache above it knows what is really sent."""

    profile: Profile


NO_PREFIXES = Profile()

# https://huggingface.co/nomic-ai/nomic-embed-text-v1.5 "Task instruction prefixes"; Ollama's embed call adds none.
_PROFILES = {"nomic-embed-text": Profile(document="search_document: ", query="search_query: ")}


def profile_of(model: str) -> Profile:
    """Return the profile of `model`, whatever its tag; a model that is not known has no prefixes.

    >>> profile_of("nomic-embed-text:v1.5") == profile_of("nomic-embed-text")
    True
    >>> profile_of("all-MiniLM-L6-v2") == NO_PREFIXES
    True
    """
    name = model.rpartition("/")[2].partition(":")[0]
    return _PROFILES.get(name, NO_PREFIXES)


def sent_texts(profile: Profile, texts: Sequence[str], purpose: Purpose) -> list[str]:
    """Return what is sent for each of `texts`."""
    return [profile.sent(text, purpose) for text in texts]


def _valid(text: str) -> str:
    # Lone surrogates come from broken JSON and cannot be encoded; tokenizers and HTTP clients raise on them.
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
