"""What may be written: candidates, the model's decision about each, and the guards that no model overrides."""

__all__ = ["guards", "signals", "write"]
