"""What the layers hold: records, candidates, and how a prompt shows them."""

__all__ = ["candidates", "record"]
