"""Any object as a target: the names by which its methods, arguments and results are known, and the talk with it."""

__all__ = ["names", "target"]
