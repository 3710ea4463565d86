"""Runs cases in this process: one event loop, one factory of each target, a folder that goes with the process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memstory.case import Case
from memstory.contract.errors import TargetError
from memstory.contract.target import TargetFactory, Tree
from memstory.models.judge import Judge, VoteFile
from memstory.models.loading import load_model
from memstory.models.shim import Chats
from memstory.playing import broken, case_of, play
from memstory.pytest_plugin.ending.guard import no_quiet_exit, nothing_forgotten
from memstory.pytest_plugin.ending.leaving import watch_the_end
from memstory.pytest_plugin.options import case_seconds, judge_file
from memstory.results.outcomes import CaseResult
from memstory.results.recording import Recording
from memstory.running.asking import Progress
from memstory.running.endings import failure_of, told
from memstory.running.environments import owner_of
from memstory.running.hosting.guarded import contained
from memstory.running.own_folder import OwnFolder, clear_dead_folders
from memstory.running.runner import RETRIEVAL_SECONDS, RunOptions
from memstory.running.stage import CLOSING_SECONDS
from memstory.running.supervision import SUPERVISOR
from memstory.running.watchdog import interrupted_after

START_SECONDS = 300.0
"""How long a target's factory may take to start; a first start may fetch much."""

STOP_SECONDS = 30.0
_PATIENCE_SECONDS = 15.0
"""By which time limits that the event loop keeps have long passed, and what they cut short is closed."""


class Worker:
    """What one process keeps from case to case. A factory is started when its first case comes, and stopped once."""

    def __init__(
        self, config: pytest.Config, targets: Mapping[str, TargetFactory], options: Mapping[str, Mapping[str, Tree]]
    ) -> None:
        seconds = case_seconds(config)
        self.targets = targets
        self._config = config
        self._options = options
        self._chats = Chats()
        self._judge = _judge(config)
        self._usual = RunOptions(
            case_seconds=seconds,
            retrieval_seconds=max(seconds, RETRIEVAL_SECONDS),
            hosted=config.getoption("memstory_isolate"),
            chats=self._chats,
            any_path=config.getoption("memstory_any_path"),
            judge=self._judge,
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
        options = replace(
            self._usual,
            target=self._options[case.target],
            base=base,
            progress=_progress(case.id, self._config),
            is_named=case.target in (self._config.getoption("memstory_target") or ()),
        )
        seconds = options.seconds(case)
        so_far: list[Recording] = []
        try:
            with interrupted_after(seconds + _PATIENCE_SECONDS) as again:
                playing = play(case.story, self.targets[case.target], folder, target=case.target,
                               options=options, before_trial=again, so_far=so_far)  # fmt: skip
                result = self._runner.run(self._watched(playing))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (the rim: whatever a target did, the next case runs)
            # It blocked, stopped or left the event loop where no coroutine of ours was under way.
            self._mend()
            cause = error if isinstance(error, Exception) else TargetError(f"the target raised {told(error)}")
            return broken(case, cause, so_far)
        return result

    async def _watched(self, playing: Coroutine[Any, Any, CaseResult]) -> CaseResult:
        self._task = asyncio.current_task()
        return await playing

    def _mend(self) -> None:
        """Make the event loop fit for the next case, after one that was left in the middle."""
        try:
            with interrupted_after(STOP_SECONDS):
                self._runner.run(_cancelled(self._task))
        except Exception:  # noqa: BLE001  (whatever it is: this loop is of no more use)
            self._runner = asyncio.Runner()

    def stop(self) -> list[str]:
        """Stop the factories and remove the folder; return what did not stop, each with its reason."""
        started = [name for name, error in self._started.items() if error is None]
        left = [said for name in started if (said := self._stopped(name, self.targets[name].stop))]
        left += [said for said in [self._stopped("the chat models", self._chats.close)] if said]
        if self._judge is not None:
            left += [said for said in [self._stopped("the judge", self._judge.close)] if said]
        try:
            with interrupted_after(STOP_SECONDS):
                self._runner.close()
        except TargetError as error:
            left.append(f"a thread that a target has left: {error}")
        if self._folder is not None:
            self._folder.remove()
        return left

    def _stopped(self, name: str, stop: Callable[[], Coroutine[Any, Any, None]]) -> str:
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


async def _cancelled(task: asyncio.Task[Any] | None) -> None:
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
            with contained():
                await call()
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise TargetError(f"it took more than {seconds:g} s") from error


def _progress(case: str, config: pytest.Config) -> Progress | None:
    """Return what shows how far a retrieval story is, where a person watches."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None or not (terminal.isatty or config.get_verbosity() > 0):
        return None
    capture = config.pluginmanager.get_plugin("capturemanager")

    def show(done: int, total: int, what: str) -> None:
        # While a test runs, pytest catches all that is written, its own terminal's output too.
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            terminal.ensure_newline()
            terminal.write_line(f"  {case} {done}/{total}  {what}")

    return show
