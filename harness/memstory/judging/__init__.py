"""Judges a recording by its story. Pure: nothing is run and nothing is read."""

__all__ = ["evaluation", "verdicts"]
