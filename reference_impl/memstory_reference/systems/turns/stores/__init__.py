"""Where turns are kept: one store, in files of this machine or in Postgres."""

__all__ = ["index", "owner_store", "tables_store", "turns_store"]
