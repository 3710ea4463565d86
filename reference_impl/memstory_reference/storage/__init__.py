"""What the stores of more than one memory system keep their rows in."""

__all__ = [
    "checked_embedder",
    "held_rows",
    "postgres",
    "recurring",
    "reindexing",
    "sql_database",
    "table",
    "tombstones",
    "vector_matrix",
]
