"""What the manager keeps: memories, their rows in the vector store, and which rows are nearest."""

__all__ = ["memory", "migration", "nearest", "rows"]
