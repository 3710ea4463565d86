"""Pure functions over text that more than one memory system needs."""
