"""One session of pytest with stories in it: what is loaded once, what is reported at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import pytest

from memstory.errors import Mark, SetupError
from memstory.pytest_plugin.chosen import load_chosen, options_of
from memstory.pytest_plugin.leaving import leave_in_time
from memstory.pytest_plugin.options import SESSION, chosen_options, redaction_level, report_folder
from memstory.pytest_plugin.worker import Worker
from memstory.reporting.terminal import terminal_summary
from memstory.reporting.writing import begin_reports, write_reports
from memstory.results.fingerprint import make_fingerprint
from memstory.results.folder.spool import Spool
from memstory.results.outcomes import CaseResult
from memstory.results.runs import Part, Run, make_run
from memstory.results.secrecy.redaction import redacted
from memstory.results.secrecy.redaction_level import Level, stricter
from memstory.results.secrecy.secret_values import Secrets, known_secrets
from memstory.target import Tree

LEFT: Final = "memstory_left"
"""Under which a worker of xdist tells what did not stop."""


class SessionState:
    """What the plugin knows in one process: a lone pytest, the controller of xdist, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.folder = report_folder(config)
        self.spool = Spool(self.folder)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.summary = ""
        self.begun = False
        self.shard: Part | None = None
        self.left: list[str] = []
        self.first_places: dict[str, Mark] = {}
        self.options = chosen_options(config)
        self.level = redaction_level(config)
        self.secrets = Secrets(known_secrets(self.options, os.environ))
        self._config = config
        self._worker: Worker | None = None

    @property
    def worker(self) -> Worker:
        """Return what runs cases in this process; the targets are loaded with the first story."""
        if self._worker is None:
            targets = load_chosen(self._config)
            self._worker = Worker(self._config, targets, options_of(targets, self.options))
        return self._worker

    def record(self, result: CaseResult, asked: Level) -> CaseResult:
        """Write a judged case down, without what must not be; return it as it was written.

        All that is shown or reported from then on is made from what is returned.
        """
        safe = redacted(result, self.level_of(asked), self.secrets)
        self.spool.append(safe)
        return safe

    def level_of(self, asked: Level) -> Level:
        """Return how much is taken out of a case whose story asks for `asked`."""
        return stricter(self.level, asked)

    def without_secrets(self, text: str) -> str:
        """Return `text` as it may be shown."""
        return text if self.level == "none" else self.secrets.without(text)[0]

    def stop(self) -> None:
        """Stop the targets that this process has started; what does not stop is added to `left`."""
        if self._worker is not None:
            self.left += self._worker.stop()

    @property
    def may_hang(self) -> bool:
        """Whether a target may have left a thread in this process that never ends."""
        return self._worker is not None and self._worker.may_hang


def state_of(config: pytest.Config) -> SessionState:
    """Return the state of this session, made when the first story is met."""
    if SESSION not in config.stash:
        config.stash[SESSION] = SessionState(config)
    state: SessionState = config.stash[SESSION]
    return state


def begin(config: pytest.Config) -> None:
    """Make the report's folder ready, and forget what a killed run left there."""
    if is_worker(config) or config.getoption("collectonly"):
        return
    state = state_of(config)
    if state.begun:
        return  # each worker of xdist calls for it
    try:
        config.add_cleanup(begin_reports(state.folder).release)
        state.begun = True
    except SetupError as error:
        raise pytest.UsageError(str(error)) from error
    except OSError as error:
        reason = error.strerror or error
        raise pytest.UsageError(
            f"reports cannot be written to {state.folder}: {reason}. Name another --report"
        ) from error


def finish(session: pytest.Session) -> None:
    """Write the reports, where this process is not a worker; then stop the targets, and settle the exit code.

    In this order, because a target that does not stop must not cost the report.
    """
    state = session.config.stash[SESSION]
    if is_worker(session.config):
        state.stop()
        session.config.workeroutput[LEFT] = state.left  # type: ignore[attr-defined]  # of xdist
        return
    if state.begun:
        _report(session, state)
    state.stop()
    if state.left:
        state.summary += "".join(f"\ndid not stop: {one}" for one in state.left)
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if state.may_hang:
        leave_in_time(int(session.exitstatus))


def _report(session: pytest.Session, state: SessionState) -> None:
    try:
        results = state.spool.read()
        if not results and state.shard is None:
            return
        fingerprint = make_fingerprint(results, started=state.started, options=_shown(state), shard=state.shard)
        run = write_reports(state.folder, make_run(results, fingerprint, complete=not _is_cut_short(session)))
    except (OSError, SetupError) as error:
        state.summary = f"the reports could not be written to {state.folder}: {error}"
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        return
    if run.cases:
        state.summary = _summary(state, run, session)
    elif state.shard is not None:
        state.summary = f"No story falls to this shard; {state.folder / 'results.json'} says so."
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and state.shard.of:
            session.exitstatus = pytest.ExitCode.OK


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is a worker of xdist."""
    return hasattr(config, "workerinput")


def _shown(state: SessionState) -> Mapping[str, Tree]:
    return state.options if state.level == "none" else state.secrets.tree_without(state.options)[0]


def _is_cut_short(session: pytest.Session) -> bool:
    stopped = session.exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    return stopped or bool(session.shouldfail or session.shouldstop)


def _summary(state: SessionState, run: Run, session: pytest.Session) -> str:
    lines = [terminal_summary(run), f"report: {state.folder / 'report.md'}"]
    if all(case.outcome == "unsupported" for case in run.cases):
        lines.append("No story ran: every one that was selected is unsupported here. This counts as a failure.")
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return "\n".join(lines)
