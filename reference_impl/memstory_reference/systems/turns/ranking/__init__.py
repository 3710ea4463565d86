"""How turns are ranked for a question; pure."""

__all__ = ["pool", "question", "scoring", "weighting"]
