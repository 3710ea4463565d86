"""report.html: a run or a comparison as one file that a browser opens from disk, without a network."""

__all__ = ["html"]
