"""Tools, their arguments and effects, and the turns in which a model uses them."""

__all__ = ["local_tools", "memory_tools", "talk"]
