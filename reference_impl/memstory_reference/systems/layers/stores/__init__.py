"""Where the layers are kept: one store on SQLite and Postgres."""

__all__ = ["layers_store", "log_store", "rows_store", "sessions_store", "tables_store"]
