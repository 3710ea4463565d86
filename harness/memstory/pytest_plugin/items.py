"""One case as a pytest item.

The case runs in pytest's setup phase and is judged in its call phase. So a target that breaks is an ERROR, in the
terminal and in JUnit, a wrong answer a FAILED, and an unsupported story a SKIPPED, all by pytest's own means.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memstory.case import Case
from memstory.contract.errors import SetupError, TargetError
from memstory.judging.evaluation import evaluate
from memstory.language.stories import InvalidStory
from memstory.playing import broken
from memstory.pytest_plugin.failure_text import broken_text, failed_text, invalid_text, sentence
from memstory.pytest_plugin.options import OUTCOME
from memstory.pytest_plugin.session import SessionState
from memstory.reporting.document import visible
from memstory.reporting.sections.scores import headline_score
from memstory.results.outcomes import CaseResult
from memstory.results.redaction import Level
from memstory.results.totals import run_again
from memstory.running.endings import describe_error


class BracketedItem(pytest.Item):
    """Lets a name with brackets make the same node id as the text of that id does.

    Since 9.2 pytest keeps ids in parts, and takes brackets that are read from text (by --lf, from the cache) for
    parameters, but those of a plain name for a name. Given as text, both are read alike; before 9.2 it changes nothing.
    """

    def __init__(self, name: str, parent: pytest.Collector, nodeid: object = None, **more: Any) -> None:
        super().__init__(name, parent, nodeid=None if nodeid is None else str(nodeid), **more)


class StoryItem(pytest.Function, BracketedItem):
    """A story on a target; it is a function so that the fixtures that a project wants everywhere work here too."""

    nofuncargs = True
    is_dealt = False
    """Whether `--shard` had its story's rows dealt out before they were items, and this is one of the shard's own."""
    case: Case
    result: CaseResult | None
    state: SessionState
    lost: TargetError | None = None
    """Why it cannot be run here, where the workers of a cluster were to do it."""

    def prepare(self, case: Case, state: SessionState) -> None:
        """Say what is to run; pytest's constructors are its own."""
        if self.config.getoption("memstory_measure"):
            case = replace(case, story=replace(case.story, measure=True))
        self.case, self.state, self.result = case, state, None
        if case.story.slug:
            self.extra_keyword_matches.add(case.story.slug)

    def setup(self) -> None:
        super().setup()
        if self.config.getoption("setuponly"):
            return
        select_once(self.session, self.state)
        if (spent := self.state.budget.reason_to_stop()) is not None:
            ended = replace(evaluate(self.case, ()), outcome="exhausted", reason=spent)
        elif self.lost is not None:
            ended = broken(self.case, self.lost)
        else:
            ended = self.state.worker.run(self.case, self.path.parent)
            self.state.budget.note(ended)
        result = self.result = self._record(ended)
        self.user_properties += _properties(result)
        if result.outcome in ("unsupported", "exhausted"):
            pytest.skip(f"{self.name}: {result.reason}")
        if result.outcome == "error":
            # Of a target that cannot start, every case says the same: once is enough to read.
            first = self.state.first_errors.setdefault((self.case.target, sentence(result)), self.name)
            first_case = None if first == self.name else first
            text = self.failure(lambda path: broken_text(self.case, result, path, self.config, first_case=first_case))
            pytest.fail(text, pytrace=False)

    def runtest(self) -> None:
        """Fail if the case that ran in setup did not pass."""
        if self.result is not None and self.result.outcome == "measured":
            # Skipped for pytest and JUnit, which know no other word for what neither passed nor failed.
            self.user_properties.append((OUTCOME, "measured"))
            pytest.skip(f"{self.name}: measured, {headline_score(self.result)}")
        if self.result is not None and self.result.outcome != "passed":
            result = self.result
            pytest.fail(self.failure(lambda path: failed_text(self.case, result, path)), pytrace=False)

    def unrun_case(self) -> tuple[CaseResult, Level]:
        """Return the case as it is before it has run, and what its story asks to be taken out."""
        return evaluate(self.case, ()), self.case.story.redact

    def end(self, result: CaseResult) -> None:
        """Record how the case ended that could not run."""
        self.result = self._record(result)

    def _record(self, result: CaseResult) -> CaseResult:
        try:
            return self._with_runs_before(result)
        except SetupError as error:  # the disk: what says so may fit where the case did not
            result = broken(self.case, error)
        except Exception as error:  # noqa: BLE001  (the rim: what a target answers may refuse to be written)
            unwritable = TargetError(f"what the target answered cannot be written: {describe_error(error)}")
            result = broken(self.case, unwritable)
        try:
            return self._with_runs_before(result)
        except SetupError as error:
            # No later case could be written either.
            self.session.shouldstop = f"no result can be written: {error}"
            return result

    def _with_runs_before(self, result: CaseResult) -> CaseResult:
        """Record this run of the case; return it together with those that another plugin had it run before."""
        recorded = self.state.record(result, self.case.story.redact)
        return run_again(self.result, recorded) if self.result else recorded

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        return self.path, self.case.story.mark.line - 1, self.name

    def failure(self, text_of: Callable[[Path | None], str]) -> str:
        """Return the message that `text_of` makes of the story's file, without what must not be shown."""
        quoted = None if self.state.level_of(self.case.story.redact) == "texts" else self.path
        return self.state.without_secrets(text_of(quoted))


def _properties(result: CaseResult) -> list[tuple[str, object]]:
    """Return what JUnit says of a case; file and line are attributes only in its family xunit1."""
    file, line, _ = (*result.where.rsplit(":", 2), "", "")[:3]
    said = {
        "story": result.story, "target": result.target, "file": file, "line": line, "outcome": result.outcome,
        "harm": result.harm, "slug": result.slug, "tags": " ".join(result.tags), "needs": " ".join(result.needs),
    }  # fmt: skip
    scores = [(name, round(value, 6)) for name, value in result.metrics.items()]
    return [*((name, value) for name, value in said.items() if value), *scores]


class InvalidItem(pytest.Function, BracketedItem):
    """An invalid story: it fails with its errors, and does not affect other tests."""

    nofuncargs = True
    is_dealt = False
    invalid: InvalidStory
    state: SessionState

    def prepare(self, invalid: InvalidStory, state: SessionState) -> None:
        """Say what is wrong."""
        self.invalid, self.state = invalid, state

    def runtest(self) -> None:
        """Record an invalid document as a result, and fail with every message."""
        select_once(self.session, self.state)
        pytest.fail(self.state.record(*self.unrun_case()).reason or "", pytrace=False)

    def unrun_case(self) -> tuple[CaseResult, Level]:
        """Return the document as a case, and what is taken out of it beside secrets."""
        text = invalid_text(self.invalid)
        invalid = CaseResult(
            id=f"{self.invalid.mark.file}::{self.invalid.id}",
            story=self.invalid.id,
            title="",
            target="",
            where=str(self.invalid.mark),
            digest="",
            outcome="invalid",
            reason=text,
            trials=(),
        )
        return invalid, "none"

    def reportinfo(self) -> tuple[os.PathLike[str], int, str]:
        return self.path, self.invalid.mark.line - 1, self.name


def story_function() -> None:
    """Stand for the function that pytest wants of an item: what a story does is in the item's own methods."""


def select_once(session: pytest.Session, state: SessionState) -> None:
    """Write down all cases of the session before the first of them runs."""
    if state.selected:
        return
    said = ""
    try:
        state.select(item.unrun_case() for item in session.items if isinstance(item, (StoryItem, InvalidItem)))
    except SetupError as error:
        said = str(error)
    if said:  # out of the clause, so that pytest shows no errors behind it
        session.shouldstop = f"no result can be written: {said}"
        pytest.fail(said, pytrace=False)


def note_foreign_end(item: pytest.Item, report: pytest.TestReport) -> None:
    """Record a story that did not run because a mark or a fixture of the project skipped or failed it."""
    if not isinstance(item, StoryItem) or item.result is not None or report.when != "setup" or report.passed:
        return
    select_once(item.session, item.state)
    if report.skipped:
        said = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
        item.end(replace(evaluate(item.case, ()), outcome="unsupported", reason=f"left out by the project: {said}"))
    else:
        lines = report.longreprtext.strip().splitlines() or ["it failed"]
        item.end(broken(item.case, SetupError(f"pytest could not set it up: {lines[-1]}")))


def forget_result(item: pytest.Item) -> None:
    """Let go of what a case came to, with all of its steps: a run of many cases would hold them to its end."""
    if isinstance(item, StoryItem):
        item.result = None


def show_safely(item: pytest.Item, report: pytest.TestReport) -> None:
    """Take what must not be shown out of what a story's target printed or logged, and tell a failure in one sentence.

    In CI pytest shows the whole message in the short summary too, where the id has the file already.
    """
    if not isinstance(item, StoryItem):
        return
    crash = getattr(report.longrepr, "reprcrash", None)
    judged = item.result if report.when != "teardown" else None
    if crash is not None and judged is not None and judged.outcome in {"failed", "error"}:
        crash.message = visible(item.state.without_secrets(sentence(judged)))
    if report.sections:
        level = item.state.level_of(item.case.story.redact)
        report.sections = [
            (title, f"[{len(text)} characters were redacted]" if level == "texts" else item.state.without_secrets(text))
            for title, text in report.sections
        ]
