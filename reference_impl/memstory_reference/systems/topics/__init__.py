"""The topics system: standing facts by exact key and conversation history by meaning, in one collection."""

__all__ = ["memory", "memory_service", "process", "settings", "tools"]
