"""Stores that find a text by its vector."""
