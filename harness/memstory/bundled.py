"""Where the stories that come with memstory lie."""

from __future__ import annotations

from pathlib import Path


def bundled_stories() -> Path:
    """Return their folder, as installed or in a checkout."""
    package = Path(__file__).parent
    installed = package / "stories"
    return installed if installed.is_dir() else package.parents[1] / "stories"
