"""Runs cases in this process: one event loop, one factory of each target, a folder that goes with the process."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memstory.case import Case
from memstory.chat import Chats
from memstory.errors import TargetError
from memstory.judging.evaluation import evaluate
from memstory.language.story import Step, Trials
from memstory.results.outcomes import CaseResult
from memstory.results.recording import Recording, StepRecord
from memstory.running.asking import Progress
from memstory.running.environments import owner_of
from memstory.running.failures import failure_of
from memstory.running.hosting.guarded import contained
from memstory.running.performer import Holds
from memstory.running.runner import RETRIEVAL_SECONDS, Limits, run
from memstory.running.watchdog import interrupted_after
from memstory.target import Json, TargetFactory

START_SECONDS = 300.0
"""How long a target's factory may take to start; a first start may fetch much."""

STOP_SECONDS = 30.0
_PATIENCE_SECONDS = 15.0
"""By which time limits that the event loop keeps have long passed, and what they cut short is closed."""


class Worker:
    """What one process keeps from case to case. A factory is started when its first case comes, and stopped once."""

    def __init__(
        self, config: pytest.Config, targets: Mapping[str, TargetFactory], options: Mapping[str, Mapping[str, Json]]
    ) -> None:
        seconds = config.getoption("memstory_seconds")
        self.targets = targets
        self._config = config
        self._options = options
        self._limits = Limits(case_seconds=seconds, retrieval_seconds=max(seconds, RETRIEVAL_SECONDS))
        self._trials: int | None = config.getoption("memstory_trials")
        self._hosted: bool = config.getoption("memstory_isolate")
        self._runner = asyncio.Runner()
        self._chats = Chats()
        self._folder: Path | None = None
        self._started: dict[str, Exception | None] = {}
        self.may_hang = False
        """Whether a target has used up its time in this process, and may have left a thread that never ends."""

    def run(self, case: Case, base: Path) -> CaseResult:
        """Run all trials of `case` and judge them; `base` is the folder of its story file."""
        if self._trials is not None:
            case = replace(case, story=replace(case.story, trials=_trials(case.story.trials, self._trials)))
        recordings = [self._record(case, base, trial) for trial in range(case.story.trials.count)]
        return evaluate(case, recordings)

    def stop(self) -> list[str]:
        """Stop the factories and remove the folder; return what did not stop, each with its reason."""
        started = [name for name, error in self._started.items() if error is None]
        left = [said for name in started if (said := self._stopped(name, self.targets[name].stop))]
        left += [said for said in [self._stopped("the chat models", self._chats.close)] if said]
        try:
            with interrupted_after(STOP_SECONDS):
                self._runner.close()
        except TargetError as error:
            self.may_hang = True
            left.append(f"a thread that a target has left: {error}")
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return left

    def _stopped(self, name: str, stop: Callable[[], Coroutine[Any, Any, None]]) -> str:
        """Return why something did not stop, nothing if it did: whatever it is, the others are stopped too."""
        try:
            with interrupted_after(STOP_SECONDS + _PATIENCE_SECONDS):
                self._runner.run(_within(STOP_SECONDS, stop))
        except Exception as error:  # noqa: BLE001  (the rim: it is told at the end of the run)
            self.may_hang = True
            return f"{name}: {failure_of(error, name).message}"
        return ""

    def _record(self, case: Case, base: Path, trial: int) -> Recording:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="memstory-"))
        broken = self._start(case.target, self._folder)
        if broken is not None:
            return _broken(case, trial, broken)
        workspace = self._folder / f"case-{owner_of(case.id, trial)}"
        seconds = self._limits.retrieval_seconds if case.story.retrieval else self._limits.case_seconds
        try:
            with interrupted_after(seconds + _PATIENCE_SECONDS):
                recording = self._runner.run(self._run(case, workspace, base, trial))
        except TargetError as error:
            # It blocked where no coroutine of ours was under way.
            self.may_hang = True
            return _broken(case, trial, error)
        else:
            self.may_hang = self.may_hang or (recording.seconds >= seconds and not self._hosted)
            return recording
        finally:
            for left in self._folder.glob(
                f"{workspace.name}*"
            ):  # The host of a killable target has a folder beside it.
                shutil.rmtree(left, ignore_errors=True)

    async def _run(self, case: Case, workspace: Path, base: Path, trial: int) -> Recording:
        return await run(
            case,
            self.targets[case.target],
            workspace,
            trial=trial,
            seed=trial,
            options=self._options[case.target],
            limits=self._limits,
            holds=_holds(case),
            progress=self._progress(case),
            hosted=self._hosted,
            base=base,
            chats=self._chats,
        )

    def _start(self, name: str, folder: Path) -> Exception | None:
        """Start a factory once, and remember if it cannot: every case of that target then says why."""
        if self._hosted:
            # Each child has a factory of its own: this process only hears of it.
            return None
        if name not in self._started:
            own = folder / f"target-{owner_of(name, 0)}"
            own.mkdir()
            try:
                with interrupted_after(START_SECONDS + _PATIENCE_SECONDS):
                    self._runner.run(_within(START_SECONDS, lambda: self.targets[name].start(own)))
                self._started[name] = None
            except Exception as error:  # noqa: BLE001  (the rim: every case of this target reports it)
                self._started[name] = error
        return self._started[name]

    def _progress(self, case: Case) -> Progress | None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or not (terminal.isatty or self._config.get_verbosity() > 0):
            return None

        capture = self._config.pluginmanager.get_plugin("capturemanager")

        def show(done: int, total: int, what: str) -> None:
            # While a test runs, pytest catches all that is written, its own terminal's output too.
            with capture.global_and_fixture_disabled() if capture else nullcontext():
                terminal.ensure_newline()
                terminal.write_line(f"  {case.id} {done}/{total}  {what}")

        return show


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


def _broken(case: Case, trial: int, error: Exception) -> Recording:
    failure = failure_of(error, case.target)
    return Recording(story=case.story.id, target=case.target, trial=trial, seed=trial, failure=failure)


def _holds(case: Case) -> Holds:
    """Return how the runner learns that a step with `eventually` need not be asked again: it is judged by itself."""

    def holds(step: Step, record: StepRecord) -> bool:
        story = replace(case.story, steps=(step,), retrieval=None, expect=(), trials=Trials())
        alone = Recording(story=story.id, target=case.target, steps=(replace(record, path=(0,)),))
        return evaluate(replace(case, story=story), [alone]).outcome == "passed"

    return holds


def _trials(written: Trials, count: int) -> Trials:
    """Return `count` trials that ask for as much as the story did: all of them, or as many as it named."""
    at_least = count if written.at_least == written.count else min(written.at_least, count)
    return Trials(count=count, at_least=at_least)
