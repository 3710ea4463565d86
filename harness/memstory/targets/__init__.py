"""Adapters to other people's memories: how a target is found by its name, by what it embeds, and each backend's own."""

__all__ = ["discovery", "embedders", "objects", "promises", "tables", "vendors"]
