"""What becomes of a turn of a session after its reply, and of the session at its end."""

__all__ = ["background", "lanes", "session_end", "writing"]
