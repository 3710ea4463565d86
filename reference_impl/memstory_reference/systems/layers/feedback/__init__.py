"""What people thought of a session: always on, never in a prompt; apart from memory (seed 003, C-25, C-29)."""

__all__ = ["session_feedback"]
