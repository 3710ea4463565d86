"""Tools on the bus, their arguments and effects, and the agent that calls them."""

__all__ = ["agent", "local_tools", "memory_tools", "tools"]
