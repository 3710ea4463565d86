"""Vector stores: Chroma, and exact search in memory."""
