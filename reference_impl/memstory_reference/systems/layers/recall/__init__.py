"""What a turn is given to remember: embeddings, ranked search, the prompt."""

__all__ = ["prompting", "retrieval"]
