"""What must not be written, and how it is removed from results."""
