"""Commands that run stories."""

__all__ = ["batch_process", "data", "demo", "explore", "option_names", "proxy", "run", "supervising"]
