"""Checks of what an agent says about its memory."""
