"""From a text to planned rows: chunks, decisions, imports."""

__all__ = ["chunking", "importing", "planning", "validation"]
