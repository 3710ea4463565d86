"""Scores of ranked lists, and how reliable they are."""

__all__ = ["metrics", "statistics"]
