"""Which YAML files are stories: told by the path alone, for every YAML file of every project, so it must be cheap."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from memstory.bundled import bundled_stories

_ENDINGS = (".story.yaml", ".story.yml")
_ROOTS: pytest.StashKey[Sequence[Path]] = pytest.StashKey()


def is_story_file(path: Path, session: pytest.Session) -> bool:
    """Whether a YAML file is ours: by its ending, by its folder, or because it was named on the command line."""
    if path.name.endswith(_ENDINGS) or session.isinitpath(path):
        return True
    if _ROOTS not in session.config.stash:
        session.config.stash[_ROOTS] = [bundled_stories(), *session.config.getini("memstory_stories")]
    return any(path.is_relative_to(root) for root in session.config.stash[_ROOTS])
