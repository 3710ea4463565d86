"""Runs cases in this process: one event loop, one factory of each target, a folder that goes with the process."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from memstory.asking import Progress
from memstory.cases import Case
from memstory.environments import owner_of
from memstory.evaluation import evaluate
from memstory.failures import failure_of
from memstory.recording import Recording, StepRecord
from memstory.results import CaseResult
from memstory.runner import RETRIEVAL_SECONDS, Limits, run
from memstory.steps import Holds
from memstory.story import Step, Trials
from memstory.target import Json, TargetFactory


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
        self._folder: Path | None = None
        self._started: dict[str, Exception | None] = {}

    def run(self, case: Case, base: Path) -> CaseResult:
        """Run all trials of `case` and judge them; `base` is the folder of its story file."""
        if self._trials is not None:
            case = replace(case, story=replace(case.story, trials=_trials(case.story.trials, self._trials)))
        recordings = [self._record(case, base, trial) for trial in range(case.story.trials.count)]
        return evaluate(case, recordings)

    def stop(self) -> None:
        """Stop the factories and remove the folder."""
        with self._runner:
            for name, error in self._started.items():
                if error is None:
                    self._runner.run(self.targets[name].stop())
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _record(self, case: Case, base: Path, trial: int) -> Recording:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="memstory-"))
        broken = self._start(case.target, self._folder)
        if broken is not None:
            failure = failure_of(broken, case.target)
            return Recording(story=case.story.id, target=case.target, trial=trial, seed=trial, failure=failure)
        workspace = self._folder / f"case-{owner_of(case.id, trial)}"
        try:
            return self._runner.run(self._run(case, workspace, base, trial))
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
        )

    def _start(self, name: str, folder: Path) -> Exception | None:
        """Start a factory once, and remember if it cannot: every case of that target then says why."""
        if name not in self._started:
            own = folder / f"target-{owner_of(name, 0)}"
            own.mkdir()
            try:
                self._runner.run(self.targets[name].start(own))
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
