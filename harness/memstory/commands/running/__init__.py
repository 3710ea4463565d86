"""Commands that run stories."""

__all__ = ["data", "demo", "explore", "option_names", "proxy", "run", "supervising"]
