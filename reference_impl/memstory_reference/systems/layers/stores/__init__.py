"""Where the layers are kept: in memory, in SQLite, in Postgres."""

__all__ = ["logs", "memory_store", "postgres", "sqlite_log_store", "sqlite_rows_store", "sqlite_store", "store"]
