"""What becomes of a turn of a session after its reply, and of the session at its end."""

__all__ = ["background", "session_end", "writing"]
