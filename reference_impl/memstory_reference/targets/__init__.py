"""The memory systems as targets of the harness: the only package here that imports `memstory`."""

REFERENCE = ("topics", "observations")
"""The systems that the target `reference` stands for."""
