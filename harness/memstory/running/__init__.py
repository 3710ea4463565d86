"""Runs a case: story and target in, recording out; nothing is judged here."""

__all__ = [
    "dask_pool",
    "dask_task",
    "endings",
    "hosting",
    "retrieval",
    "runner",
    "stage",
    "supervision",
    "watchdog",
    "workspace_files",
]
