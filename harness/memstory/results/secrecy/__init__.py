"""What must not be written down, and how it is taken out of results."""
