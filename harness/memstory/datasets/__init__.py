"""Retrieval tasks from files: a corpus with its queries, or a known dataset that the user has or fetches.

Loaders read and check; they never guess a label.
"""

from memstory.datasets.loading import load_distractors, load_task, place_of, read_set
from memstory.datasets.set_copies import SetCopy, add_set, checked_copy, fetch_set, set_copy, sets_folder

__all__ = [
    "SetCopy",
    "add_set",
    "checked_copy",
    "fetch_set",
    "load_distractors",
    "load_task",
    "place_of",
    "read_set",
    "set_copy",
    "sets_folder",
]
