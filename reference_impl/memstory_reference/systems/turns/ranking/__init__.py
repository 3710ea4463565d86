"""How turns are ranked for a question; pure."""
