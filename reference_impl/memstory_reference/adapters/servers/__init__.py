"""Servers that a memory meets others on, and clients of them: NATS and Postgres."""
