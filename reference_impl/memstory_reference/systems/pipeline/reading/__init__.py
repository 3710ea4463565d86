"""What a text holds: preferences, facts, names, numbers; and which type of memory that makes it."""

__all__ = ["cleaning", "detectors", "preference_keys", "preference_statements", "stated_facts"]
