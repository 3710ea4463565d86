"""A Postgres database that several systems, processes and machines share: connections, places, schemas."""

__all__ = ["place", "postgres_database", "tables"]
