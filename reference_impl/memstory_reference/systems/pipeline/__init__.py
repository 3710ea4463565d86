"""Pipeline (P): clean, chunk, embed, weigh, route and store; recall within a budget; compress old sessions."""

__all__ = ["chunk", "memory", "parts", "pipeline_store", "recall", "settings", "tables"]
