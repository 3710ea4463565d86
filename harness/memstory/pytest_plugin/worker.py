"""Runs cases in this process: one event loop, one factory of each target, a folder that goes with the process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from memstory.case import Case
from memstory.conformance.probe import OVER, probe, untold
from memstory.contract.errors import MemstoryError, TargetError
from memstory.contract.target import TargetFactory, Tree
from memstory.models.judge import Judge, VoteFile
from memstory.models.loading import load_model
from memstory.models.question_answers import QuestionAnswers
from memstory.models.shim import Chats
from memstory.playing import broken, case_of, play
from memstory.pytest_plugin.options import case_seconds, judge_file
from memstory.pytest_plugin.process_guard import no_quiet_exit, nothing_forgotten, watch_the_end
from memstory.results.folder.spool import Histories
from memstory.results.outcomes import CaseResult
from memstory.results.recording import Recording
from memstory.running.endings import describe_error, failure_of
from memstory.running.hosting.guarded import contain_exits
from memstory.running.retrieval import Progress
from memstory.running.runner import RETRIEVAL_SECONDS, RunOptions
from memstory.running.stage import CLOSING_SECONDS, owner_of
from memstory.running.supervision import SUPERVISOR, OwnFolder, clear_dead_folders
from memstory.running.watchdog import interrupted_after
from memstory.targets.discovery import is_table_spec, load_spec, promising_within
from memstory.targets.promises import ProbeFindings

START_SECONDS = 300.0
"""How long a target's factory may take to start; a first start may fetch much."""

PROBE_SECONDS = 30.0
"""How long it may take to find out what a class or a table can do beside what it promises."""

STOP_SECONDS = 30.0
_MINUTES = 90.0
"""From how many seconds on the time that is left is shown in minutes."""

_PATIENCE_SECONDS = 15.0
"""By which time limits that the event loop keeps have long passed, and what they cut short is closed."""


class Worker:
    """What one process keeps from case to case. A factory is started when its first case comes, and stopped once."""

    def __init__(
        self,
        config: pytest.Config,
        targets: Mapping[str, TargetFactory],
        options: Mapping[str, Mapping[str, Tree]],
        histories: Histories,
    ) -> None:
        seconds = case_seconds(config)
        self.targets = targets
        self._config = config
        self._options = options
        self._chats = Chats()
        self._judge = _judge(config)
        answering: str | None = config.getoption("memstory_answer")
        self._answers = (
            QuestionAnswers(load_model(answering), self._judge) if answering and self._judge is not None else None
        )
        self._usual = RunOptions(
            case_seconds=seconds,
            retrieval_seconds=max(seconds, RETRIEVAL_SECONDS),
            hosted=config.getoption("memstory_isolate"),
            chats=self._chats,
            any_path=config.getoption("memstory_any_path"),
            judge=self._judge,
            answers=self._answers,
            sample=config.getoption("memstory_sample"),
            histories=histories,
        )
        self._trials: int | None = config.getoption("memstory_trials")
        self._runner = asyncio.Runner()
        self._folder: OwnFolder | None = None
        self._started: dict[str, Exception | None] = {}
        self._task: asyncio.Task[Any] | None = None

    def run(self, case: Case, base: Path) -> CaseResult:
        """Run all trials of `case` and judge them; `base` is the folder of its story file."""
        case = case_of(case.story, case.target, self._trials)
        if self._folder is None:
            watch_the_end()
            clear_dead_folders()
            self._folder = OwnFolder(os.environ.get(SUPERVISOR))
        with no_quiet_exit(), nothing_forgotten():
            return self._run(case, base, self._folder.path)

    def _run(self, case: Case, base: Path, folder: Path) -> CaseResult:
        failed = self._start(case.target, folder)
        if failed is not None:
            return broken(case, failed)
        try:
            self._probe(case)
        except Exception as error:  # noqa: BLE001  (the rim: a test of ours that broke is told, and the next case runs)
            return broken(case, error)
        options = replace(
            self._usual,
            target=self._options[case.target],
            base=base,
            is_named=case.target in (self._config.getoption("memstory_target") or ()),
        )
        seconds = options.seconds(case)
        so_far: list[Recording] = []
        try:
            with interrupted_after(seconds + _PATIENCE_SECONDS) as again:
                options = replace(options, progress=_progress(case.id, self._config, again))
                playing = play(case.story, self.targets[case.target], folder, target=case.target,
                               options=options, before_trial=again, so_far=so_far)  # fmt: skip
                result = self._runner.run(self._watch(playing))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (the rim: whatever a target did, the next case runs)
            # It blocked, stopped or left the event loop where no coroutine of ours was under way.
            self._mend()
            cause = error if isinstance(error, Exception) else TargetError(f"the target raised {describe_error(error)}")
            return broken(case, cause, so_far)
        return result

    def _probe(self, case: Case) -> None:
        """Find out once what a target that declares nothing can do beside its promises, when a story needs more."""
        factory, options = self.targets[case.target], self._options[case.target]
        one = promising_within(factory)
        if one is None or one.is_declared or one.findings is not None:
            return
        lacking = case.story.needs - factory.abilities(options)
        if lacking and lacking <= untold(factory, options) - one.taken_back:
            one.findings = ProbeFindings()
            # A server that cases share lives in their event loop: the tests start one of theirs.
            tried = load_spec(factory.spec) if factory.spec and is_table_spec(factory.spec) else factory
            with suppress(MemstoryError):  # The case says the same.
                found = probe(tried, options, seconds=PROBE_SECONDS, promises=False)
                one.findings = ProbeFindings(
                    holds=[each.capability for each in found if each.holds],
                    not_reached=[each.capability for each in found if each.why == OVER],
                )

    async def _watch(self, playing: Coroutine[Any, Any, CaseResult]) -> CaseResult:
        self._task = asyncio.current_task()
        return await playing

    def _mend(self) -> None:
        """Make the event loop fit for the next case, after one that was left in the middle."""
        try:
            with interrupted_after(STOP_SECONDS):
                self._runner.run(_cancel(self._task))
        except Exception:  # noqa: BLE001  (whatever it is: this loop is of no more use)
            self._runner = asyncio.Runner()

    def remarks(self) -> Sequence[str]:
        """Return what each target has to say of itself."""
        return [factory.remark(self._options[name]) for name, factory in self.targets.items()]

    def stop(self) -> list[str]:
        """Stop the factories and remove the folder; return what did not stop, each with its reason."""
        stops = {name: self.targets[name].stop for name, error in self._started.items() if error is None}
        stops["the chat models"] = self._chats.close
        if self._answers is not None:
            stops["the model that answers"] = self._answers.close
        if self._judge is not None:
            stops["the judge"] = self._judge.close
        left = [said for name, stop in stops.items() if (said := self._stop(name, stop))]
        try:
            with interrupted_after(STOP_SECONDS):
                self._runner.close()
        except TargetError as error:
            left.append(f"a thread that a target has left: {error}")
        if self._folder is not None:
            self._folder.remove()
        return left

    def _stop(self, name: str, stop: Callable[[], Coroutine[Any, Any, None]]) -> str:
        """Return why something did not stop, nothing if it did: whatever it is, the others are stopped too."""
        try:
            with interrupted_after(STOP_SECONDS + _PATIENCE_SECONDS):
                self._runner.run(_within(STOP_SECONDS, stop))
        except Exception as error:  # noqa: BLE001  (the rim: it is reported at the end of the run)
            return f"{name}: {failure_of(error, name).message}"
        return ""

    def _start(self, name: str, folder: Path) -> Exception | None:
        """Start a factory once, and remember if it cannot: every case of that target then says why."""
        if self._usual.hosted:
            # Each child has its own factory: this process only hears of it.
            return None
        if name not in self._started:
            own = folder / f"target-{owner_of(name, 0)}"
            own.mkdir(parents=True, exist_ok=True)
            try:
                with interrupted_after(START_SECONDS + _PATIENCE_SECONDS):
                    self._runner.run(_within(START_SECONDS, lambda: self.targets[name].start(own)))
                self._started[name] = None
            except Exception as error:  # noqa: BLE001  (the rim: every case of this target reports it)
                self._started[name] = error
        return self._started[name]


async def _cancel(task: asyncio.Task[Any] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CLOSING_SECONDS)


def _judge(config: pytest.Config) -> Judge | None:
    name = config.getoption("memstory_judge")
    return Judge(load_model(name), VoteFile(judge_file(config))) if name else None


async def _within(seconds: float, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            with contain_exits():
                await call()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TargetError(f"it took more than {seconds:g} s") from error


def time_left(seconds: float) -> str:
    """Return about how long the rest of a case takes, nothing for less than a second.

    >>> time_left(42.3), time_left(200), time_left(0)
    ('; about 42 s left', '; about 3 min left', '')
    """
    if seconds < 1:
        return ""
    return f"; about {seconds:.0f} s left" if seconds < _MINUTES else f"; about {seconds / 60:.0f} min left"


def _progress(case: str, config: pytest.Config, again: Callable[[], None]) -> Progress:
    """Return what gives the next history its time by `again`, and shows where a person watches how far a story is."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    begun = monotonic()
    skipped: int | None = None

    def show(done: int, total: int, what: str) -> None:
        nonlocal skipped
        again()
        if terminal is None or not (terminal.isatty or config.get_verbosity() > 0):
            return
        # What a killed run had done before the first took no time.
        skipped = done - 1 if skipped is None else skipped
        left = (monotonic() - begun) / (done - skipped) * (total - done)
        # While a test runs, pytest catches all that is written, its own terminal's output too.
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            terminal.ensure_newline()
            terminal.write_line(f"  {case} {done}/{total}  {what}{time_left(left)}")

    return show
