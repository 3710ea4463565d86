"""Pipeline (P): clean, chunk, embed, weigh, route and store; recall within a budget; compress old sessions."""

__all__ = [
    "chunk",
    "importance",
    "ingest",
    "memory",
    "memory_tools",
    "parts",
    "reading",
    "recall",
    "selection",
    "service",
    "settings",
    "stores",
]
