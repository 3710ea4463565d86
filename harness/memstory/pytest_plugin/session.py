"""One session of pytest with stories in it: what is loaded once, what is reported at the end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import Final

import pytest

from memstory.contract.codec import decode, encode_lean
from memstory.contract.errors import Mark, SetupError
from memstory.contract.target import Tree
from memstory.pytest_plugin.budget import budget_of
from memstory.pytest_plugin.options import SESSION, TIMES, chosen_options, is_worker, redaction_level, report_folder
from memstory.pytest_plugin.process_guard import (
    QUIET_EXIT,
    about_to_leave,
    end_undisturbed,
    interrupt_on_termination,
    no_quiet_exit,
)
from memstory.pytest_plugin.shards import Deal
from memstory.pytest_plugin.targets import load_chosen_or_own, options_of, options_of_the_project
from memstory.pytest_plugin.worker import Worker
from memstory.reporting.markdown import as_markdown
from memstory.reporting.terminal import terminal_summary, unsupported_reasons
from memstory.reporting.writing import PAGE_NAME, PageOptions, begin_reports, first_screen, write_reports
from memstory.results.folder.recordings_file import LastRun
from memstory.results.folder.spool import (
    HISTORIES_NAME,
    ISOLATE,
    SELECTED_NAME,
    Histories,
    Spool,
    lost_cases,
    read_selected,
    write_selected,
)
from memstory.results.outcomes import WRONG, CaseResult
from memstory.results.redaction import Level, redact, redact_together, stricter
from memstory.results.runs import Part, Run, make_fingerprint, make_run, quantity, some
from memstory.results.secret_values import Secrets, known_secrets
from memstory.running.supervision import REPORT, tell_supervisor

_WIDTH: Final = 80

_NAMED: Final = 10
"""Lost cases that are named in the terminal; report.md has all."""

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"

LEFT: Final = "memstory_left"
"""Under which a worker of xdist tells what did not stop."""

REMARKS: Final = "memstory_remarks"
"""Under which it tells what is to be known of its targets, such as that it ran stories on our own, and why."""

SELECTED: Final = "memstory_selected"
"""Under which it tells which cases were selected, where the file with them is gone."""


class SessionState:
    """What the plugin knows in one process: a lone pytest, the controller of xdist, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.folder = report_folder(config)
        self.spool = Spool(self.folder)
        self.budget = budget_of(config, self.folder)
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.summary = ""
        self.begun = False
        self.ending = False
        self.selected: Sequence[CaseResult] = ()
        self.last: LastRun | None = None
        self.shard: Part | None = None
        shard = config.getoption("memstory_shard")
        self.deal = None if shard is None else Deal(shard, config.stash.get(TIMES, None))
        self.left: list[str] = []
        self.remarks = ""
        self._is_heard = False
        self.left_out = 0
        self.before: list[str] = []
        self.first_places: dict[str, Mark] = {}
        self.first_errors: dict[tuple[str, str], str] = {}
        self.options = chosen_options(config)
        url = config.getoption("memstory_chat_url")
        self.models_at = {} if url is None else {"chat-url": url}
        self.level = redaction_level(config)
        self.secrets = Secrets(known_secrets(self.options, os.environ))
        self._config = config
        self._pid = os.getpid()
        self._worker: Worker | None = None

    @property
    def worker(self) -> Worker:
        """Return what runs cases in this process; the targets are loaded with the first story."""
        if self._worker is None:
            targets, self.remarks = load_chosen_or_own(self._config)
            options = options_of(targets, self.options)
            clean = self._without_secrets_in if self.level != "none" else lambda tree: tree
            self._worker = Worker(self._config, targets, options, Histories(self.folder, clean))
        return self._worker

    def remark(self) -> None:
        """Add what is to be known of the targets of this process, now that its cases have run."""
        if self._worker is not None and not self._is_heard:
            said = [fill(one, _WIDTH) for one in self._worker.remarks() if one]
            self.remarks = "\n".join(filter(None, [self.remarks, *said]))

    def hear(self, output: Mapping[str, Tree]) -> None:
        """Take from a worker what only it knows: the process that writes the report runs nothing itself."""
        self.left += output.get(LEFT, [])
        # Of an object, the worker that has probed it says most.
        self.remarks = max(output.get(REMARKS, ""), self.remarks, key=len)
        self.selected = decode(Sequence[CaseResult], output.get(SELECTED, [])) or self.selected
        self._is_heard = True

    def select(self, cases: Iterable[tuple[CaseResult, Level]]) -> None:
        """Write down which cases are to run, each with what its story asks to be taken out."""
        self.selected = redact_together([(case, self.level_of(asked)) for case, asked in cases], self.secrets)
        write_selected(self.folder, self.selected)

    def record(self, result: CaseResult, asked: Level) -> CaseResult:
        """Write a judged case down, without what must not be; return it as it was written.

        All that is shown or reported from then on is made from what is returned.
        """
        self.end_copy()
        safe = redact(result, self.level_of(asked), self.secrets)
        self.spool.append(safe)
        return safe

    def end_copy(self) -> None:
        """End this process if somebody's test or target forked it: a copy must not write the report of the run."""
        if os.getpid() != self._pid:
            os._exit(QUIET_EXIT)

    def level_of(self, asked: Level) -> Level:
        """Return how much is taken out of a case whose story asks for `asked`."""
        return stricter(self.level, asked)

    def without_secrets(self, text: str) -> str:
        """Return `text` as it may be shown."""
        return text if self.level == "none" else self.secrets.without(text)[0]

    def _without_secrets_in(self, tree: Tree) -> Tree:
        return self.secrets.tree_without(tree)[0]

    def stop(self) -> None:
        """Stop the targets that this process has started; what does not stop is added to `left`."""
        if self._worker is not None:
            with no_quiet_exit():
                self.left += self._worker.stop()
            about_to_leave()


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
        state.last = LastRun.in_folder(state.folder)
        resumes = config.getoption("memstory_resume")
        config.add_cleanup(begin_reports(state.folder, state.before.append, resumes=resumes).release)
        if not resumes:
            state.budget.clear()
        config.add_cleanup(interrupt_on_termination())
        state.begun = True
        tell_supervisor(REPORT, str(state.folder.absolute()))
    except SetupError as error:
        raise pytest.UsageError(str(error)) from error
    except OSError as error:
        reason = error.strerror or error
        raise pytest.UsageError(
            f"reports cannot be written to {state.folder}: {reason}. Name another --report"
        ) from error


def end_quietly(config: pytest.Config) -> None:
    """Let no further Ctrl-C disturb the end of this run."""
    state: SessionState = config.stash[SESSION]
    if state.begun and not state.ending:
        state.ending = True
        config.add_cleanup(end_undisturbed())


def finish(session: pytest.Session) -> None:
    """Write the reports, where this process is not a worker; then stop the targets, and settle the exit code.

    In this order, because a target that does not stop must not cost the report.
    """
    state = session.config.stash[SESSION]
    state.end_copy()
    state.remark()
    if is_worker(session.config):
        state.stop()
        session.config.workeroutput.update(_for_the_controller(state))  # type: ignore[attr-defined]  # of xdist
        return
    if state.begun:
        end_quietly(session.config)
        _report(session, state)
    _leave_out_silent(session.config)
    state.stop()
    state.summary += "".join(f"\n{said}" for said in state.before)
    if state.begun:
        state.summary += "".join(f"\n{said}" for said in options_of_the_project(session.config))
    if state.left_out:
        state.summary += f"\n--quick left out {quantity(state.left_out, 'case')}, which only measure"
    if state.remarks:
        state.summary += f"\n{state.remarks}"
    if state.left:
        state.summary += "".join(f"\ndid not stop: {one}" for one in state.left)
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _leave_out_silent(config: pytest.Config) -> None:
    """Take from the terminal's reports those that it never shows; for each failure it would look through all."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal and config.option.durations is None and "" in terminal.stats:
        terminal.stats[""] = [report for report in terminal.stats[""] if getattr(report, "sections", True)]


def _for_the_controller(state: SessionState) -> Mapping[str, Tree]:
    """Return what the process that writes the report is to hear of this worker."""
    # A target may have removed the file.
    is_gone = not (state.folder / SELECTED_NAME).exists()
    selected = [encode_lean(case) for case in state.selected] if is_gone else []
    return {LEFT: state.left, REMARKS: state.remarks, SELECTED: selected}


def _report(session: pytest.Session, state: SessionState) -> None:
    try:
        results = state.spool.read()
        missing = lost_cases(state.selected or read_selected(state.folder), results, _why_lost(session))
        cases = [*results, *missing]
        if not cases and state.shard is None:
            return
        fingerprint = make_fingerprint(cases, started=state.started, options=_shown_options(state), shard=state.shard)
        made = make_run(cases, fingerprint, complete=not missing and not _is_cut_short(session))
        options = _page_options(session, state)
        run = write_reports(state.folder, made, options=options)
        if run.complete and not run.summary["error"]:
            (state.folder / HISTORIES_NAME).unlink(missing_ok=True)
    except (OSError, SetupError) as error:
        state.summary = f"the reports could not be written to {state.folder}: {error}"
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        return
    if missing and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    if run.cases:
        lines = [_summary(state, run, session, options.last), *_tell_service(run, options.last)]
        state.summary = "\n".join([*lines, *_report_overruling(session, cases)])
    elif state.shard is not None:
        state.summary = f"No story falls to this shard; {state.folder / 'results.json'} says so."
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and state.shard.of:
            session.exitstatus = pytest.ExitCode.OK


def _report_overruling(session: pytest.Session, cases: Sequence[CaseResult]) -> Iterator[str]:
    """Make the run fail and say why, where pytest was kept from counting what failed: by a patch or by xfail marks."""
    wrong = [case.id for case in cases if case.outcome in WRONG]
    if wrong and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        yield (
            f"pytest counts no failure, but {quantity(len(wrong), 'case')} did not end well: {some(wrong)}."
            " The exit code is 1."
        )


def _tell_service(run: Run, last: Run | None) -> Iterator[str]:
    """Append the first screen of the report to the page that GitHub shows of a job; yield why it was not written."""
    if path := os.environ.get(STEP_SUMMARY):
        try:
            with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(as_markdown(first_screen(run, last=last)))
        except OSError as error:
            yield f"{STEP_SUMMARY}: nothing was written to {path}: {error.strerror}"


def _page_options(session: pytest.Session, state: SessionState) -> PageOptions:
    return PageOptions(
        roots=[session.config.rootpath],
        clean=state.without_secrets,
        last=state.last.read() if state.last else None,
        safe=lambda case: redact(case, state.level, state.secrets),
    )


def _shown_options(state: SessionState) -> Mapping[str, Tree]:
    shown = {**state.options, **state.models_at}
    return shown if state.level == "none" else state.secrets.tree_without(shown)[0]


def _is_cut_short(session: pytest.Session) -> bool:
    stopped = session.exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR)
    return stopped or bool(session.shouldfail or session.shouldstop)


def _why_lost(session: pytest.Session) -> str:
    # What stopped it ends in an interruption, too.
    if session.shouldfail or session.shouldstop:
        return f"the run was stopped: {session.shouldfail or session.shouldstop}"
    if session.exitstatus == pytest.ExitCode.INTERRUPTED:
        return "the run was interrupted"
    why = "the process that ran it ended, pytest did, or a target removed the report's folder"
    return why if session.config.getoption("memstory_isolate") else f"{why}; {ISOLATE}"


def _cut_short(run: Run) -> Iterator[str]:
    if not run.complete:
        names = [case.id for case in run.cases if case.is_lost]
        without = f" no result: {some(names, _NAMED)}" if names else ""
        interrupted = any("the run was interrupted" in (case.reason or "") for case in run.cases if case.is_lost)
        yield f"The run was {'interrupted' if interrupted else 'cut short'}.{without}"


def _summary(state: SessionState, run: Run, session: pytest.Session, last: Run | None) -> str:
    config = session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    width = terminal._tw.fullwidth if terminal else _WIDTH  # noqa: SLF001  (pytest has no public word for it)
    lines = [terminal_summary(run, last=last, verbose=config.get_verbosity() > 0, width=width), *_cut_short(run)]
    if run.summary["exhausted"]:
        first = next(case.reason for case in run.cases if case.outcome == "exhausted")
        lines.append(f"{quantity(run.summary['exhausted'], 'case')} did not run: {first}")
    if (state.folder / HISTORIES_NAME).exists():
        lines.append("What each history gave is kept: the same command with --resume goes on from there.")
    lines += [f"report: {state.folder / 'report.md'}", f"page:   {state.folder / PAGE_NAME}"]
    if all(case.outcome == "unsupported" for case in run.cases):
        lines.append("No story ran: every one that was selected is unsupported here. This counts as a failure.")
        lines += fill(unsupported_reasons(run)[0], width).split("\n")
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return "\n".join(lines)
