"""The pipeline in SQLite: the truth of rows, preferences, cached embeddings and centroids."""

__all__ = ["archive_store", "changes_store", "pipeline_store", "rows_store", "tables_store", "vectors_store"]
