"""Memories behind a server: MCP and HTTP."""
