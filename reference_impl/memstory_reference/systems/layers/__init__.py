"""Three layers of memory: facts, sessions and rules, and what is written to them when, and by whose decision."""

__all__ = [
    "log_entries",
    "memory",
    "process",
    "recall",
    "records",
    "service",
    "sessions",
    "settings",
    "stores",
]
