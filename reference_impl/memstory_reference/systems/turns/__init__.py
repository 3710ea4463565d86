"""A memory of dialogue turns: who said what, when, in which session, and beside what."""

__all__ = [
    "conditions",
    "config",
    "exchange",
    "memory_tools",
    "ranking",
    "service",
    "settings",
    "stores",
    "system",
    "turn",
]
