"""The crisis log: always on, never in a prompt, never searched; apart from memory (seed 003, C-25)."""

__all__ = ["crisis_signals", "log_entries"]
