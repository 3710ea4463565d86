"""Scores of ranked lists, and how reliable they are."""
