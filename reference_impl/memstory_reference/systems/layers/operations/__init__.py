"""What is done with candidates and sessions: extraction, comparison, reconciliation, summaries, promotion."""

__all__ = ["episodic", "extraction", "reconciliation"]
