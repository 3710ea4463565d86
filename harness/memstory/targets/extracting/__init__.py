"""Adapters to memories whose language model decides what of a text is kept."""
