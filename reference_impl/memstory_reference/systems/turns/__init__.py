"""A memory of dialogue turns: who said what, when, in which session, and beside what."""

__all__ = ["memory", "ranking", "service", "settings", "stores", "system", "turn"]
