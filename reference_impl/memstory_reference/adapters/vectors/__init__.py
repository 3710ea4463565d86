"""Vector stores: Chroma, and exact search in memory."""

__all__ = ["chroma", "chroma_store", "exact_store", "reindexing", "stored_rows"]
