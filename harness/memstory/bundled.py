"""Where the stories that come with memstory lie."""

from __future__ import annotations

from pathlib import Path

PREFIX = "bundled/"
"""What stands for their folder in ids and places, where they lie outside the project."""


def bundled_stories() -> Path:
    """Return their folder, as installed or in a checkout."""
    package = Path(__file__).parent
    installed = package / "stories"
    return installed if installed.is_dir() else package.parents[1] / "stories"


def shown_path(path: Path, project: Path) -> str:
    """Return how a file of stories is named: from the project, or `bundled/generic/list.yaml`, or in full."""
    for root, prefix in ((project, ""), (bundled_stories(), PREFIX)):
        for place in (path.absolute(), path.resolve()):
            if place.is_relative_to(root):
                return f"{prefix}{place.relative_to(root).as_posix()}"
    return path.as_posix()


def named_path(shown: str) -> Path:
    """Return the file that `shown_path` names, seen from the project."""
    path = Path(shown)
    return path if path.exists() or not shown.startswith(PREFIX) else bundled_stories() / shown.removeprefix(PREFIX)
