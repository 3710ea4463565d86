"""The story language: its words, their arguments, and what they need from a target."""
