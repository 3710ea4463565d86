"""What the ports are made of on this machine; an adapter is imported only when it was chosen."""

__all__ = [
    "embedding",
    "machine",
    "mcp_server",
    "offline_chat",
    "servers",
    "store_folder",
    "vectors",
]
