"""Three layers of memory: facts, sessions and rules, and what is written to them when, and by whose decision."""

__all__ = [
    "audit",
    "config",
    "feedback",
    "identity",
    "modes",
    "operations",
    "outside",
    "process",
    "recall",
    "records",
    "records_desk",
    "service",
    "settings",
    "stores",
    "turns",
    "web",
]
