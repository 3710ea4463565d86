"""The one harness for mutants: a bug is put into a system, and the story that speaks of it must fail, for that reason.

A system's test_mutants.py has its `FACTORY` and its `MUTANTS`, rows of ("STORY: bug", why, *patches). `why` is a part
of the reason that the story then gives. A patch (owner, name, new) is for the public `owner.name`, a port's or a pure
function: where `new` is a function, `new(plain)` takes its place; any other value takes its place, or is its answer.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memstory.language.stories import load_stories
from memstory.language.story import Story
from memstory.playing import play
from memstory.results.outcomes import CaseResult

ODD: Sequence[object] = (
    *(None, True, 0, -1, 1.5, 10**19, 10**400, float("nan"), float("inf"), b"x", object(), [], ["x"], [None], {}),
    *({"$ne": ""}, {5: 5}, {"a": "\udfff"}, "", " ", "\0", "\ud800", "a\nb", "x" * 200_000, "\u202e", "Ünïcödé 🦀"),
)
"""What no caller should give, and what some do."""


class Chance:
    """Arguments drawn by a seed, most of them right."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  (a test's choice, no secret)

    def one(self, *right: object) -> Any:
        """Return one of these, or once in ten times something odd."""
        return self.random.choice(ODD if self.random.random() < 0.1 else right)


STORIES = Path(__file__).parents[3] / "stories"


@dataclass(frozen=True)
class Mutant:
    """A row of `MUTANTS`."""

    name: str
    why: str
    patches: Sequence[tuple[object, str, Any]]

    @property
    def story(self) -> str:
        """The id of the story that notices."""
        return self.name.partition(":")[0]

    def __post_init__(self) -> None:
        private = [name for _, name, _ in self.patches if name.startswith("_")]
        assert not private, f"{self.name}: {private} are private; change a port or a public function"

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Have the bug, in this process: a crash of the story would run a healthy child."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, name, new in self.patches:
                patch.setattr(owner, name, _changed(getattr(owner, name), new))
            yield


def _changed(plain: Any, new: Any) -> object:
    if inspect.isfunction(new):
        return new(plain)
    if inspect.iscoroutinefunction(plain):
        return lambda *_, **__: asyncio.sleep(0, new)
    return (lambda *_, **__: new) if inspect.isfunction(plain) else new


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mutant" in metafunc.fixturenames:
        mutants = [Mutant(name, why, patches) for name, why, *patches in metafunc.module.MUTANTS]
        metafunc.parametrize("mutant", mutants, ids=[one.name for one in mutants])


@pytest.fixture
def chance(seed: int) -> Chance:
    """Arguments for fuzzed calls."""
    return Chance(seed)


@pytest.fixture(scope="session")
def stories() -> dict[str, Story]:
    """Every story by its id; the rows of a parametrised one as `C10-shutdown`, its first one by the id alone too."""
    read = [story for file in sorted(STORIES.rglob("*.yaml")) for story in load_stories(file, file.name)]
    loaded = [story for story in read if isinstance(story, Story)]
    rows = {f"{story.id}-{story.row}": story for story in loaded if story.row}
    return {story.id: story for story in reversed(loaded)} | rows


@pytest.fixture
def play_story(
    request: pytest.FixtureRequest, stories: dict[str, Story], tmp_path: Path
) -> Callable[[str], Awaitable[CaseResult]]:
    """`await play_story("C1")` plays one on the module's system."""
    factory = request.module.FACTORY()
    return lambda story: play(stories[story], factory, tmp_path)
