"""What becomes of a turn after its reply, and of a session at its end."""

__all__ = ["background", "diagnostics", "idle", "lanes", "session_end", "writing"]
