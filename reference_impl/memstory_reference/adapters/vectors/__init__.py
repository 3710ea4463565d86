"""Vector stores: our SQLite file, Chroma, and Postgres."""

__all__ = ["alone", "chroma_store", "exact_store", "postgres_rows", "stored_rows"]
