"""Pipeline (P): clean, chunk, embed, weigh, route and store; recall within a budget; compress old sessions."""

__all__ = [
    "importance",
    "ingest",
    "memory",
    "memory_tools",
    "reading",
    "recall",
    "selection",
    "service",
    "settings",
    "stores",
    "system",
]
