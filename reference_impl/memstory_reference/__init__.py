"""Six memory systems for AI agents, each complete: `open_memory` opens any of them."""

from memstory_reference.library import AsyncMemory, OpenMemory, open_memory, open_memory_async

__all__ = ["AsyncMemory", "OpenMemory", "open_memory", "open_memory_async"]
