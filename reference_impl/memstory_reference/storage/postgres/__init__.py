"""A Postgres database that several systems, processes and machines share: connections, places, schemas."""

__all__ = ["connections_store", "place", "schema_store"]
