"""Commands that run stories."""
