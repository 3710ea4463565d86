"""What the ports are made of on this machine; an adapter is imported only when it was chosen."""

__all__ = [
    "clocks",
    "embedding",
    "faults",
    "folder_copy",
    "folder_lock",
    "mcp_server",
    "offline_chat",
    "random_ids",
    "servers",
    "vectors",
    "watched",
]
