"""What a turn is given to remember: embeddings, ranked search, the prompt."""
