"""Pipeline (P): clean, chunk, embed, weigh, route and store; recall within a budget; compress old sessions."""
