"""The steps of a story."""
