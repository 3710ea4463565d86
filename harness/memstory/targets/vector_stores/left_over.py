"""Whose data on a shared server are left over: those of a workspace of this machine that is gone."""

from __future__ import annotations

from pathlib import Path
from socket import gethostname


def owner_of(workspace: str) -> str:
    """Return what is noted beside the data of `workspace`."""
    return f"{gethostname()}:{workspace}"


def is_gone(owner: str) -> bool:
    """Return whether nobody opens the data of this owner again."""
    host, _, workspace = owner.partition(":")
    return host == gethostname() and not Path(workspace).exists()
