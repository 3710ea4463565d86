"""Three layers of memory: facts, sessions and rules, and what is written to them when, and by whose decision."""

__all__ = [
    "layers_store",
    "logs",
    "memory",
    "ports",
    "process",
    "recall",
    "records",
    "sessions",
    "settings",
    "tables_store",
]
