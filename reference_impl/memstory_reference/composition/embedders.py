"""Embedders and re-rankers by the names that settings have for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from memstory.contract.cache_folder import cache_folder
from memstory_reference.composition.extras import OPENAI_CLIENT, require_extra
from memstory_reference.errors import InputError

if TYPE_CHECKING:
    from memstory_reference.adapters.embedding.embedding_cache import CachedEmbedder
    from memstory_reference.adapters.embedding.prefixes import ProfiledEmbedder
    from memstory_reference.setting_rules import CheckedSettings
    from memstory_reference.systems.pipeline.parts import Reranker

MINILM = "all-MiniLM-L6-v2"
NOMIC = "nomic-embed-text"
OLLAMA = "ollama:"
OPENAI = "openai:"
RANDOM = "random"
"""Vectors by chance: only times can be measured with them."""
WORDS = "words"
"""Vectors that count words: quick and the same everywhere, for exploring and for tests."""


def embedder_of(settings: CheckedSettings) -> CachedEmbedder:
    """Return the embedder of `settings` of a person's store: its vectors lie there alone, and go when it forgets."""
    return make_embedder(settings.embedding_model, ollama_host=settings.ollama_host, cached=False)


def make_embedder(name: str, *, ollama_host: str, cached: bool = True) -> CachedEmbedder:
    """Return the embedder that a setting names; `cached` puts it behind this machine's cache.

    Raises:
        InputError: no embedder has this name.
        SetupError: its weights are missing or wrong.
    """
    from memstory_reference.adapters.embedding.embedding_cache import FILE, CachedEmbedder  # noqa: PLC0415

    if name in (RANDOM, WORDS):
        from memstory_reference.adapters.embedding.fixed_vectors import CountedWords, RandomVectors  # noqa: PLC0415

        return CachedEmbedder(RandomVectors() if name == RANDOM else CountedWords(), None)
    cache = cache_folder(os.environ)
    file = cache / FILE if cached else None
    model = _on_a_server(name)
    if model is None:
        from memstory_reference.adapters.embedding import weights  # noqa: PLC0415
        from memstory_reference.adapters.embedding.minilm import MiniLmEmbedder  # noqa: PLC0415

        return CachedEmbedder(MiniLmEmbedder(weights.find_weights(cache)), file)
    if name.startswith(OPENAI):
        with require_extra(*OPENAI_CLIENT):
            from memstory.models.openai_server import openai_server  # noqa: PLC0415
            from memstory_reference.adapters.embedding.openai_embedder import OpenAiEmbedder  # noqa: PLC0415

        hosted = OpenAiEmbedder(model, openai_server())
        return CachedEmbedder(hosted, file, identity=hosted.identity)
    with require_extra("the client of Ollama", "ollama", "ollama"):
        from memstory_reference.adapters.embedding.ollama_embedder import OllamaEmbedder  # noqa: PLC0415

    local = OllamaEmbedder(model, ollama_host)
    return CachedEmbedder(local, file, identity=local.identity)


def make_idle_embedder(name: str) -> ProfiledEmbedder:
    """Return an embedder that only knows the name of its model: nothing is loaded, and no server is asked."""
    from memstory_reference.adapters.embedding.fixed_vectors import IdleEmbedder  # noqa: PLC0415

    if name in (RANDOM, WORDS):
        return IdleEmbedder(name)
    model = _on_a_server(name)
    if model is not None and name.startswith(OPENAI):
        return IdleEmbedder(name)
    return IdleEmbedder(MINILM if model is None else model.removesuffix(":latest"))


def make_reranker(name: str | None) -> Reranker | None:
    """Return the re-ranker that a setting names: `cross-encoder`, `cross-encoder:MODEL`, or none.

    Raises:
        InputError: no re-ranker has this name.
    """
    if name is None:
        return None
    kind, _, model = name.partition(":")
    if kind != "cross-encoder":
        raise InputError(f"there is no re-ranker named {name!r:.80}; allowed: cross-encoder, cross-encoder:MODEL")
    from memstory_reference.adapters.embedding.cross_encoder import MODEL, CrossEncoderReranker  # noqa: PLC0415

    return CrossEncoderReranker(model or MODEL)


def _on_a_server(name: str) -> str | None:
    """Return the name that a server has for a model, None for MiniLM, which runs in this process."""
    if name in (MINILM, "minilm"):
        return None
    if name == NOMIC or (name.startswith(OLLAMA) and name != OLLAMA):
        return name.removeprefix(OLLAMA)
    if name.startswith(OPENAI) and name != OPENAI:
        return name.removeprefix(OPENAI)
    allowed = f"{MINILM}, {NOMIC}, ollama:NAME, openai:NAME, {WORDS} (no sense), {RANDOM} (times alone)"
    raise InputError(f"there is no embedder named {name!r:.80}; allowed: {allowed}")
