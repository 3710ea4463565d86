"""Embedders, what they need on this machine, and what stands in for them or around them."""
