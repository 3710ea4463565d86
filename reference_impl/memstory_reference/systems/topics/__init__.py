"""The topics system: standing facts by exact key and conversation history by meaning, in one collection."""
