"""The pipeline in SQLite: the truth of rows, preferences, cached embeddings and centroids."""
