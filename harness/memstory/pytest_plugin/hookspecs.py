"""The hook that a project's `conftest.py` may implement, and where the plugin keeps its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from memstory.target import TargetFactory

# Its value is `session.SessionState`; naming that here would make the two modules need each other.
SESSION: pytest.StashKey[Any] = pytest.StashKey()
"""There as soon as a story was collected."""


def pytest_memstory_targets(config: pytest.Config) -> Mapping[str, type[TargetFactory] | TargetFactory | str]:  # type: ignore[empty-body]
    """Return targets of this project by name: a factory, its class, or `module:Class`."""
