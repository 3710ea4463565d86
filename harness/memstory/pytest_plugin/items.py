"""One case as a pytest item.

The case runs in pytest's setup phase and is judged in its call phase. So a target that breaks is an ERROR, in the
terminal and in JUnit, a wrong answer a FAILED, and an unsupported story a SKIPPED, all by pytest's own means.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memstory.case import Case
from memstory.language.stories import InvalidStory
from memstory.pytest_plugin.failure_text import broken_text, failed_text, invalid_text
from memstory.pytest_plugin.options import OUTCOME
from memstory.pytest_plugin.session import SessionState
from memstory.reporting.measured import headline
from memstory.results.outcomes import CaseResult


class BracketedItem(pytest.Item):
    """Lets a name with brackets make the same node id as the text of that id does.

    Since 9.2 pytest keeps ids in parts, and takes brackets that are read from text (by --lf, from the cache) for
    parameters, but those of a plain name for a name. Given as text, both are read alike; before 9.2 it changes nothing.
    """

    def __init__(self, name: str, parent: pytest.Collector, nodeid: object = None, **more: Any) -> None:
        super().__init__(name, parent, nodeid=None if nodeid is None else str(nodeid), **more)


class StoryItem(pytest.Function, BracketedItem):
    """A story on a target."""

    case: Case
    result: CaseResult | None
    state: SessionState

    def prepare(self, case: Case, state: SessionState) -> None:
        """Say what is to run; pytest's constructors are its own."""
        self.case, self.state, self.result = case, state, None

    def setup(self) -> None:
        super().setup()
        if self.config.getoption("setuponly"):
            return
        result = self.result = self.state.record(
            self.state.worker.run(self.case, self.path.parent), self.case.story.redact
        )
        if result.outcome == "unsupported":
            pytest.skip(f"{self.name}: {result.reason}")
        if result.outcome == "error":
            text = self.failure(lambda path: broken_text(self.case, result, path, self.config))
            pytest.fail(text, pytrace=False)

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        return self.path, self.case.story.mark.line - 1, self.name

    def failure(self, text_of: Callable[[Path | None], str]) -> str:
        """Return the message that `text_of` makes of the story's file, without what must not be shown."""
        quoted = None if self.state.level_of(self.case.story.redact) == "texts" else self.path
        return self.state.without_secrets(text_of(quoted))


class InvalidItem(pytest.Function):
    """A document that is no story: it fails with what is wrong, and stops nobody else's tests."""

    invalid: InvalidStory
    state: SessionState

    def prepare(self, invalid: InvalidStory, state: SessionState) -> None:
        """Say what is wrong."""
        self.invalid, self.state = invalid, state

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        return self.path, self.invalid.mark.line - 1, self.name


def tell_outcome(request: pytest.FixtureRequest) -> None:
    """Fail if the case that ran in setup did not pass."""
    item = request.node
    if item.result is not None and item.result.outcome == "measured":
        # Skipped for pytest and JUnit, which know no other word for what neither passed nor failed.
        item.user_properties.append((OUTCOME, "measured"))
        pytest.skip(f"{item.name}: measured, {headline(item.result)}")
    if item.result is not None and item.result.outcome != "passed":
        pytest.fail(item.failure(lambda path: failed_text(item.case, item.result, path)), pytrace=False)


def tell_invalid(request: pytest.FixtureRequest) -> None:
    """Record a wrong document as a result of its own, and fail with every message."""
    item = request.node
    text = invalid_text(item.invalid)
    result = CaseResult(
        id=f"{item.invalid.mark.file}::{item.invalid.id}",
        story=item.invalid.id,
        title="",
        target="",
        where=str(item.invalid.mark),
        digest="",
        outcome="invalid",
        reason=text,
        trials=(),
    )
    pytest.fail(item.state.record(result, "none").reason or "", pytrace=False)


def show_safely(item: pytest.Item, report: pytest.TestReport) -> None:
    """Take what must not be shown out of what a story's target printed or logged."""
    if isinstance(item, StoryItem):
        level = item.state.level_of(item.case.story.redact)
        report.sections = [
            (title, f"[{len(text)} characters were redacted]" if level == "texts" else item.state.without_secrets(text))
            for title, text in report.sections
        ]


# pytest asks for the signature once an item; worked out here, it is worked out once.
tell_outcome.__signature__ = inspect.signature(tell_outcome)  # type: ignore[attr-defined]  # what inspect looks for
