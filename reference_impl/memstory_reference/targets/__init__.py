"""The memory systems as targets of the harness: the only package here that imports `memstory`."""

__all__ = ["REFERENCE"]

REFERENCE = ("topics", "observations", "pipeline", "layers", "manager", "turns")
"""The systems that the target `reference` stands for."""
