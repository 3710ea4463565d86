"""A Postgres database that several systems, processes and machines share: connections, places, schemas."""

__all__ = ["connections_store", "place", "postgres_database_store", "schema_store", "tables"]
