"""What a step can be: each word declared once, one module for each family."""

from __future__ import annotations

from memstory.language.words import lifecycle, memories, times, tools, turns
from memstory.language.words.word import WORDS, Word

__all__ = ["WORDS", "Word", "memories", "shapes", "step_parsing", "times", "word"]

for _family in (turns, memories, tools, times, lifecycle):
    for _word in _family.STEPS:
        WORDS.add(_word)
