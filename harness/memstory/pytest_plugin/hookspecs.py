"""The hook that a project's `conftest.py` may implement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from memstory.contract.target import TargetFactory


def pytest_memstory_targets(config: pytest.Config) -> Mapping[str, type[TargetFactory] | TargetFactory | str]:  # type: ignore[empty-body]
    """Return targets of this project by name: a factory, its class, or `module:Class`."""
