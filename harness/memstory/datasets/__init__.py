"""Retrieval tasks from files: a corpus with its queries, or a known dataset that the user has.

Loaders read and check; they never guess a label and never download anything.
"""

from memstory.datasets.loading import load_distractors, load_task
from memstory.datasets.story_paths import Bounds

__all__ = ["Bounds", "load_distractors", "load_task"]
