"""Where turns are kept: one store, in files of this machine or in Postgres."""

__all__ = ["folder_store", "owner_store", "shared_store", "tables_store", "turns_store"]
