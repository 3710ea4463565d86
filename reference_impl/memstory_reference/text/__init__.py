"""Pure functions over text that more than one memory system needs."""

__all__ = [
    "asking",
    "chunks",
    "english",
    "fences",
    "folding",
    "keywords",
    "lines",
    "replies",
    "secret_guard",
    "sentences",
    "stems",
    "token_sets",
    "tokens",
]
