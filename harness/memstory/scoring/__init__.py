"""Numbers from numbers: scores of ranked lists, and how far they may be trusted."""
