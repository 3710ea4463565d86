"""The memory systems as targets of the harness: the only package here that imports `memstory`."""

from memstory_reference.system_memory import SYSTEM_NAMES

__all__ = ["REFERENCE"]

REFERENCE = SYSTEM_NAMES
"""The systems that the target `reference` stands for."""
