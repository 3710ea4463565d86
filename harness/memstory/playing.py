"""play(story, factory) -> CaseResult: the one place where running a story meets judging what was recorded.

It needs no pytest. In a notebook: `result = await play(story, Fts5Factory())`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from memstory.case import Case
from memstory.contract.target import TargetFactory
from memstory.judging.evaluation import evaluate
from memstory.judging.verdicts import holds
from memstory.language.story import Story
from memstory.results.outcomes import CaseResult
from memstory.results.recording import Recording
from memstory.running.endings import failure_of
from memstory.running.runner import CUT_SHORT, RunOptions, run
from memstory.running.stage import host_folders, owner_of

USUAL = RunOptions()


async def play(
    story: Story,
    factory: TargetFactory,
    workspace: Path | None = None,
    *,
    target: str | None = None,
    trials: int | None = None,
    options: RunOptions = USUAL,
    before_trial: Callable[[], None] | None = None,
    so_far: list[Recording] | None = None,
) -> CaseResult:
    """Run all trials of `story` on a target of `factory`, and judge them; the result reports what went wrong.

    `workspace` is a folder for the trials, each of which leaves nothing there. The factory has been started by then;
    without a workspace it is started and stopped here. `target` is the name in the result, `trials` how often to run
    where the story is not to decide. `before_trial` is called before each. `so_far` is filled while they run, so that
    a caller who has to cancel them has what happened until then.
    """
    if workspace is None:
        with TemporaryDirectory(prefix="memstory-") as folder:
            await factory.start(Path(folder))
            try:
                return await play(story, factory, Path(folder) / "cases", target=target, trials=trials, options=options)
            finally:
                await factory.stop()
    case = case_of(story, target or factory.name, trials)
    recordings = [] if so_far is None else so_far
    for trial in range(case.story.trials.count):
        if before_trial:
            before_trial()
        own_folder = workspace / f"case-{owner_of(case.id, trial)}"
        recordings.append(await _record(case, factory, own_folder, options, recordings))
    return evaluate(case, recordings)


def case_of(story: Story, target: str, trials: int | None = None) -> Case:
    """Return the case of a story on a target, run `trials` times where a number is given."""
    if trials is not None:
        story = replace(story, trials=story.trials.times(trials))
    return Case(story=story, target=target)


def broken(case: Case, error: Exception, so_far: Sequence[Recording] = ()) -> CaseResult:
    """Return the result of a case that could not begin or go on: `error` ended it after what happened `so_far`."""
    failure = failure_of(error, case.target)
    recordings = []
    for number in range(case.story.trials.count):
        usual = Recording(story=case.story.id, target=case.target, trial=number, seed=number, failure=failure)
        one = next((known for known in so_far if known.trial == number), usual)
        if one.failure is not None and one.failure.message == CUT_SHORT:
            one = replace(one, failure=replace(failure, step=one.failure.step))
        recordings.append(one)
    return evaluate(case, recordings)


async def _record(
    case: Case, factory: TargetFactory, workspace: Path, options: RunOptions, before: list[Recording]
) -> Recording:
    try:
        return await run(case, factory, workspace, options, trial=len(before), holds=holds, so_far=before)
    finally:
        for left in (workspace, *host_folders(workspace)):
            shutil.rmtree(left, ignore_errors=True)
