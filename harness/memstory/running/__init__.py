"""Runs a case: story and target in, recording out; nothing is judged here."""
