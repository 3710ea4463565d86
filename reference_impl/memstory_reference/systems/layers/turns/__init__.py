"""What becomes of a turn after its reply, and of a session at its end."""
