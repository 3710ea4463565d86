"""What is done with candidates and sessions: extraction, comparison, reconciliation, summaries, promotion."""

__all__ = ["dedup", "episodic", "extraction", "forget_requests", "promotion", "reconciliation"]
