"""Ids that never come twice on any machine, for memories that are kept; stories have seeded ones."""

from __future__ import annotations

from uuid import uuid4


def random_id() -> str:
    """Return 32 hexadecimal digits."""
    return uuid4().hex
