"""Commands for people who write stories and targets."""

__all__ = ["chat_story", "explain", "list", "mcp", "new", "probe", "validate", "words"]
