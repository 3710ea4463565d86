"""Joins systems and adapters: the only package that knows both. Expensive imports wait until they are chosen."""

__all__ = [
    "chat_models",
    "declaration",
    "embedders",
    "extras",
    "layers",
    "manager",
    "observations",
    "pipeline",
    "systems",
    "topics",
    "turns",
    "vector_stores",
]
