"""MemoryManager (M): conversation, facts and context of the day in one vector store, with a window of recent turns."""

__all__ = ["agent", "manager", "memories", "memory", "settings"]
