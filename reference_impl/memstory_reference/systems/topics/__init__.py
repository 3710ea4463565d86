"""The topics system: standing facts by exact key and conversation history by meaning, in one collection."""

__all__ = ["agent", "bus_tools", "memory", "memory_service", "process", "settings", "tools"]
