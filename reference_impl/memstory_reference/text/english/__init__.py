"""What people say in English, read by exemplars and a few rules: facts, corrections, questions, wishes to forget.

The chat model's stand-in talks by it, and memories ask it where no language model can be asked. Its words and exemplars
are in `english.yaml`.
"""

__all__ = ["lexicon", "statements"]
