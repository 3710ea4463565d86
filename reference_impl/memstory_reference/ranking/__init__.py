"""Pure ranking: scores in, order out."""
