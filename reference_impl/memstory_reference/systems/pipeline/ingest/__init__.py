"""From a text to planned rows: chunks, decisions, imports."""
