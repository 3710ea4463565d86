"""Guarded targets, and targets in a process that can be killed."""

__all__ = ["guarded", "host"]
