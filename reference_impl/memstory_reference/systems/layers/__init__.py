"""Three layers of memory: facts, sessions and rules, and what is written to them when, and by whose decision."""

__all__ = [
    "audit",
    "config",
    "feedback",
    "memory",
    "modes",
    "outside",
    "process",
    "recall",
    "records",
    "service",
    "settings",
    "stores",
    "web",
]
