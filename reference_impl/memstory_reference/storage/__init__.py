"""What the stores of more than one memory system keep their rows in."""
