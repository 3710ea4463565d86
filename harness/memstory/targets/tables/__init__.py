"""How a table of `memstory.toml` maps the operations of a memory to the calls of a server, by MCP or HTTP."""

__all__ = ["drafting", "mcp", "mcp_session", "reading", "replies", "table"]
