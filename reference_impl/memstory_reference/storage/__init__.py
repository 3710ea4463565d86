"""What the stores of more than one memory system keep their rows in."""

__all__ = [
    "checked_embedder",
    "database_store",
    "held_rows",
    "lane",
    "mapped_matrix",
    "postgres",
    "recurring",
    "reindexing",
    "sql_database",
    "tombstones",
    "vector_matrix",
]
