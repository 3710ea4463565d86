"""Memories that come with an agent framework."""
