"""What a step can be: each word declared once, one module for each family."""

from __future__ import annotations

from memstory.language.words import blocks, jobs, lifecycle, memories, queries, times, tool_use, turns
from memstory.language.words.word import WORDS, Word

__all__ = ["WORDS", "Word"]

for _family in (turns, memories, queries, tool_use, jobs, times, lifecycle, blocks):
    for _word in _family.STEPS:
        WORDS.add(_word)
