"""Observations (O): what finished runs found, ranked by meaning and quality, told to the planner of the next run."""

__all__ = ["config", "injection", "observation", "ordering", "quality", "research", "run_tools", "service"]
