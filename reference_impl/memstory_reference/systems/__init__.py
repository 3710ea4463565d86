"""The memory systems; none knows another."""

__all__ = ["layers", "manager", "observations", "pipeline", "topics", "turns"]
