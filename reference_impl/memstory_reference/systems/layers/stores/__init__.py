"""Where the layers are kept: in SQLite, in Postgres."""

__all__ = ["logs", "postgres", "sqlite_log_store", "sqlite_rows_store", "sqlite_store", "store"]
