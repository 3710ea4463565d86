"""Checks of what an agent says of its own memory."""
