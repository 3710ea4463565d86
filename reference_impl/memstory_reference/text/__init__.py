"""Pure functions over text that more than one memory system needs."""

__all__ = ["chunks", "english", "lines", "secret_guard", "sentences", "words"]
