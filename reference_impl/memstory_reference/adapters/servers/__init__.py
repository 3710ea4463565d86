"""Servers that a memory meets others on, and clients of them: NATS and Postgres."""

__all__ = ["embedded_nats", "embedded_postgres", "http_service", "nats_bus"]
