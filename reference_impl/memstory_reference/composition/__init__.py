"""Joins systems and adapters: the only package that knows both. Expensive imports wait until they are chosen."""
