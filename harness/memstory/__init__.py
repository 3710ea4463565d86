"""Stories and evaluation for the memory of AI agents."""
