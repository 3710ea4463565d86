"""Embedders, what they need on this machine, and what stands in for them or around them."""

__all__ = [
    "cross_encoder",
    "embedding_cache",
    "fixed_vectors",
    "minilm",
    "ollama_embedder",
    "openai_embedder",
    "prefixes",
    "weights",
]
