"""One session of pytest with stories in it: what is loaded once, what is reported at the end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memstory.errors import Mark, SetupError
from memstory.pytest_plugin.chosen import load_chosen, options_of
from memstory.pytest_plugin.hookspecs import SESSION
from memstory.pytest_plugin.options import chosen_options, report_folder
from memstory.pytest_plugin.worker import Worker
from memstory.reporting import Spool, begin_reports, make_fingerprint, terminal_summary, write_reports
from memstory.results import CaseResult


class SessionState:
    """What the plugin knows in one process: a lone pytest, the controller of xdist, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.folder = report_folder(config)
        self.spool = Spool(self.folder)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.summary = ""
        self.begun = False
        self.first_places: dict[str, Mark] = {}
        self._config = config
        self._worker: Worker | None = None

    @property
    def worker(self) -> Worker:
        """Return what runs cases in this process; the targets are loaded with the first story."""
        if self._worker is None:
            targets = load_chosen(self._config)
            self._worker = Worker(self._config, targets, options_of(targets, chosen_options(self._config)))
        return self._worker

    def stop(self) -> None:
        """Stop the targets that this process has started."""
        if self._worker is not None:
            self._worker.stop()


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
    try:
        begin_reports(state.folder)
        state.begun = True
    except OSError as error:
        reason = error.strerror or error
        raise pytest.UsageError(
            f"reports cannot be written to {state.folder}: {reason}. Name another --report"
        ) from error


def finish(session: pytest.Session) -> None:
    """Stop the targets; where this process is not a worker, write the reports and settle the exit code."""
    state = session.config.stash[SESSION]
    state.stop()
    if is_worker(session.config) or not state.begun:
        return
    try:
        results = state.spool.read()
        if results:
            fingerprint = make_fingerprint(results, started=state.started, options=chosen_options(session.config))
            write_reports(state.folder, results, fingerprint, complete=not _is_cut_short(session))
    except (OSError, SetupError) as error:
        state.summary = f"the reports could not be written to {state.folder}: {error}"
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        return
    if results:
        state.summary = _summary(state, results, session)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is a worker of xdist."""
    return hasattr(config, "workerinput")


def _is_cut_short(session: pytest.Session) -> bool:
    stopped = session.exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    return stopped or bool(session.shouldfail or session.shouldstop)


def _summary(state: SessionState, results: list[CaseResult], session: pytest.Session) -> str:
    lines = [terminal_summary(results), f"report: {state.folder / 'report.md'}"]
    if all(result.outcome == "unsupported" for result in results):
        lines.append("No story ran: every one that was selected is unsupported here. This counts as a failure.")
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return "\n".join(lines)
