"""A memory of dialogue turns: who said what, when, in which session, and beside what."""

__all__ = ["agent", "memory", "question", "ranking", "service", "settings", "stores", "turn"]
