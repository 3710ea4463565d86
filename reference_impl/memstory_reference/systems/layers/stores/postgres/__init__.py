"""The layers in Postgres, which several processes and machines may share."""

__all__ = ["log_store", "postgres_store"]
