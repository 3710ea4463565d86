"""Vector stores: our SQLite file, Chroma, and Postgres."""

__all__ = ["chroma_store", "exact_store"]
