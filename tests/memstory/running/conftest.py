"""What tests of steps share: a factory of a test module that another process can import."""

import sys
from pathlib import Path

import pytest

_CHILD = """
import importlib.util
found = importlib.util.spec_from_file_location("tests_of_a_parent", {path!r})
tests = importlib.util.module_from_spec(found)
found.loader.exec_module(tests)
Made = tests.{factory}
"""


@pytest.fixture
def importable(tmp_path, monkeypatch):
    """Make the factory of a test module what its `spec` names, for this process and its children."""

    def offer(factory):
        path = Path(sys.modules[factory.__module__].__file__)
        module, _, _ = factory.spec.partition(":")
        (tmp_path / f"{module}.py").write_text(_CHILD.format(path=str(path), factory=factory.__name__))
        monkeypatch.syspath_prepend(str(tmp_path))
        return factory()

    return offer
