"""What every test of a heavy backend needs: to be left out only where its library is missing, and to say so."""

import importlib.util
import os
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest

from memstory.contract.clock import StoryClock
from memstory.contract.target import Environment
from memstory.targets.discovery import installation_problem

VARIABLE = "MEMSTORY_BACKENDS"


# A library may leave a connection open that is collected whenever Python likes, in whatever test runs then.
LEFT_OPEN = pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <socket\.socket:pytest.PytestUnraisableExceptionWarning"
)


def pytest_collection_modifyitems(items):
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(LEFT_OPEN)


@cache
def missing(vendor, extra):
    """Say what is not installed, or nothing: looked up once, not for each of hundreds of tests."""
    if vendor is not None and importlib.util.find_spec(vendor) is None:
        return f"the package '{vendor}' is not installed: it is for `nox -s backends`"
    return installation_problem([extra]) if extra else ""


def pytest_runtest_setup(item):
    memory = item.callspec.params.get("memory") if hasattr(item, "callspec") else None
    asking = memory or item.cls or item.module
    reason = missing(getattr(asking, "vendor", None), getattr(asking, "extra", None))
    if not reason:
        return
    if os.environ.get(VARIABLE) == "all":
        pytest.fail(f"{VARIABLE}=all, and {reason}", pytrace=False)
    pytest.skip(reason)


class Letters:
    """A text's vector counts its letters."""

    model = "letters"

    def __init__(self):
        self.calls = []

    async def embed(self, texts, purpose):
        self.calls.append((list(texts), purpose))
        return [self._vector(text.lower()) for text in texts]

    async def close(self):
        pass

    def _vector(self, text):
        counts = [text.count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]
        length = sum(count * count for count in counts) ** 0.5
        return [count / length for count in counts]


@pytest.fixture
def letters():
    return Letters()


@pytest.fixture
def opened(tmp_path):
    @asynccontextmanager
    async def open_target(factory, *, folder="workspace", **fields):
        workspace = tmp_path / folder
        workspace.mkdir(exist_ok=True)
        await factory.start(tmp_path)
        target = factory.target()
        await target.open(Environment(workspace=str(workspace), owner="ann", **fields), StoryClock())
        try:
            yield target
        finally:
            await target.close()
            await factory.stop()

    return open_target
