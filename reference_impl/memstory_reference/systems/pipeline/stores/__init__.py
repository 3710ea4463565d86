"""The pipeline in SQL: the truth of rows, preferences, cached embeddings and centroids."""

__all__ = ["pipeline_store", "tables_store"]
