"""What is done with candidates and sessions: extraction, comparison, reconciliation, summaries, promotion."""
