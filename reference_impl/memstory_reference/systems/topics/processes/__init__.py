"""The topics memory split over processes that meet on a bus."""

__all__ = ["agent_process", "memory_process", "tools_process"]
