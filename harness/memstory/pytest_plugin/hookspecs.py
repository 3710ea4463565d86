"""The hook that a project's `conftest.py` may implement, and where the plugin keeps its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from memstory.pytest_plugin.session import SessionState
    from memstory.target import TargetFactory

SESSION: pytest.StashKey[SessionState] = pytest.StashKey()
"""There as soon as a story was collected."""


def pytest_memstory_targets(config: pytest.Config) -> Mapping[str, type[TargetFactory] | TargetFactory | str]:  # type: ignore[empty-body]
    """Return targets of this project by name: a factory, its class, or `module:Class`."""
