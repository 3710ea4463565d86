"""Six memory systems for AI agents, each complete: `open_memory` opens any of them."""

from memstory_reference.library import (
    AsyncMemory,
    OpenMemory,
    back_up_memory,
    open_memory,
    open_memory_async,
    reindex_memory,
)

__all__ = ["AsyncMemory", "OpenMemory", "back_up_memory", "open_memory", "open_memory_async", "reindex_memory"]
