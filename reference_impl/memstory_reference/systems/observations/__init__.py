"""Observations (O): what finished runs found, ranked by meaning and quality, told to the planner of the next run."""

__all__ = ["memory", "observation", "observations_store", "ranking", "research", "settings"]
