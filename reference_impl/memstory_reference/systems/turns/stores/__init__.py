"""Where turns are kept: in files of this machine, or in Postgres."""

__all__ = ["owner_store", "postgres_store", "sqlite_store", "store"]
