"""run(case, factory, workspace) -> Recording: opens the memory, does what the story says, closes; judges nothing.

After each `say` and `add` the harness waits for the target's background work (`settle`), so that no story is a race;
a story that says for itself when to settle switches that off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from memstory.bundled import named_path
from memstory.case import Case
from memstory.contract.errors import NotSupported, TargetError
from memstory.contract.target import Capability, Environment, Request, Target, TargetFactory, Tree
from memstory.datasets import load_task
from memstory.language.capabilities import IS_SHARED, LACKS
from memstory.language.story import Retrieval, Step
from memstory.language.story_paths import Bounds
from memstory.models.judge import Judge
from memstory.models.question_answers import QuestionAnswers
from memstory.models.shim import Chats, Shim, gives_chat_to
from memstory.results.folder.spool import Histories
from memstory.results.recording import Failure, Recording
from memstory.running.endings import failure_of
from memstory.running.left_tasks import LeftTasks
from memstory.running.performer import Branch, Holds, Performer, is_judged
from memstory.running.retrieval import Limit, Progress, TaskPlan, run_retrieval
from memstory.running.stage import Stage, make_environment, open_stage
from memstory.tasks.retrieval import RetrievalTask, sample_of, sample_questions

CASE_SECONDS = 60.0
"""How long the steps of a case may take."""

RETRIEVAL_SECONDS = 3600.0
"""How long a retrieval task may take: real data are embedded first."""


CUT_SHORT = "the run was cut short"
"""Why a run ended that was cancelled, until somebody knows better."""

OPENING = "opening the target"
"""Where a run is before its first step."""

CORPUS_SECONDS = 120.0
"""How long a target that nobody named may take to remember the corpus of a story that only measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How cases are run.

    `target` are options of the target, over which those of a story win. `hosted` puts the target into its own
    process, which a story with `crash` gets anyway. `base` is the folder of the story's file: paths of corpora start
    there. A target that is not `is_named` was chosen with others by the name of their group, and gets little
    time for a large corpus. With `chats`, a story that talks with a backend that cannot goes through the chat shim.
    With `any_path`, a story may name files outside its root and its case's folder. Of a retrieval task, only a `sample`
    of so many histories is run, and `answers` are asked for beside; what each history gives is kept in `histories`, and
    taken from there. A retrieval may take `retrieval_seconds` for each of its histories.
    """

    target: Mapping[str, Tree] = field(default_factory=dict)
    case_seconds: float = CASE_SECONDS
    retrieval_seconds: float = RETRIEVAL_SECONDS
    hosted: bool = False
    base: Path | None = None
    chats: Chats | None = None
    progress: Progress | None = None
    is_named: bool = True
    any_path: bool = False
    judge: Judge | None = None
    answers: QuestionAnswers | None = None
    sample: int | None = None
    histories: Histories | None = None

    def seconds(self, case: Case) -> float:
        """Return how long a run of `case` may take."""
        return self.retrieval_seconds if case.story.retrieval else self.case_seconds


async def run(
    case: Case,
    factory: TargetFactory,
    workspace: Path,
    options: RunOptions,
    *,
    trial: int = 0,
    holds: Holds | None = None,
    so_far: list[Recording] | None = None,
) -> Recording:
    """Return what happened; whatever went wrong is in `failure`, nothing is raised.

    `workspace` is an empty folder for this run, or one yet to be made. `holds` says when a step with `eventually` need
    not be asked again. Where the run is cancelled, what had happened is added to `so_far`.
    """
    begun = perf_counter()
    bounds = Bounds(
        base=options.base or named_path(case.story.mark.file).parent, workspace=workspace, anywhere=options.any_path
    )
    running = _Run(case=case, factory=factory, options=options, bounds=bounds, trial=trial, holds=holds)
    left = LeftTasks()
    with left.watch():
        try:
            failure = await running.carry_out()
        except asyncio.CancelledError:
            if so_far is not None:
                cut = replace(running.failure(TargetError(CUT_SHORT)), detail=None)
                so_far.append(running.recording(cut, perf_counter() - begun))
            raise
        seconds = perf_counter() - begun
        return replace(running.recording(failure, seconds), left=tuple(await left.warnings()))


@dataclass(slots=True, kw_only=True)
class _Run:
    """One run and what it has come to, filled while it goes on, so that a run cut short keeps what it did."""

    case: Case
    factory: TargetFactory
    options: RunOptions
    bounds: Bounds
    trial: int
    holds: Holds | None
    branch: Branch = field(default_factory=Branch)
    parts: dict[str, Any] = field(default_factory=dict)
    stage: Stage | None = None
    performer: Performer | None = None

    def recording(self, failure: Failure | None, seconds: float) -> Recording:
        """Return what has happened by now."""
        return Recording(
            story=self.case.story.id,
            target=self.case.target,
            trial=self.trial,
            seed=self.trial,
            steps=tuple(self.branch.records),
            failure=failure,
            seconds=seconds,
            **self.parts,
        )

    async def carry_out(self) -> Failure | None:
        """Do all that belongs to the run, and close the target; return why it did not come to its end, if so."""
        failure: Failure | None = None
        limit = asyncio.timeout(self.options.seconds(self.case))
        try:
            # The exam is the judge's and not the case's: its time does not count.
            await self.examine()
            async with limit:
                env = make_environment(self.case, self.bounds, seed=self.trial, options=self.options.target)
                await self.go(env, limit)
        except Exception as error:  # noqa: BLE001  (the rim: any error of a backend becomes a recorded failure)
            failure = self.timed_out(error) if limit.expired() else self.failure(error)
        except asyncio.CancelledError:
            await self.close()
            raise
        return await self.close(failure)

    async def examine(self) -> None:
        """Let the judge pass its exam, where the story needs one."""
        judge, answers = self.options.judge, self.options.answers
        if judge is not None and is_judged(self.case.story.steps):
            self.parts["about"] = {"judge": f"{judge.name}: {await judge.sit()}"}
        elif answers is not None and self.case.story.retrieval:
            await answers.begin()

    @property
    def _answering(self) -> Mapping[str, str]:
        return self.options.answers.about if self.options.answers else {}

    def _progress(self, limit: asyncio.Timeout) -> Progress:
        """Return what says how far a retrieval is, and gives its next history as much time as the first had."""

        def show(done: int, total: int, what: str) -> None:
            limit.reschedule(asyncio.get_running_loop().time() + self.options.seconds(self.case))
            if self.options.progress is not None:
                self.options.progress(done, total, what)

        return show

    async def go(self, env: Environment, limit: asyncio.Timeout) -> None:
        """Do what the story says."""
        story = self.case.story
        env = replace(env, options=self.factory.cheapest_options(env.options, story.needs))
        able = self.factory.abilities(env.options)
        shim = self._shim(able, env)
        if shim is not None:
            able, env = shim.able, shim.environment(env)
        _refuse_what_cannot_run(self.case, able)
        if story.retrieval:
            await self._retrieve(story.retrieval, env, limit)
        if story.steps:
            is_old = _has_step(story.steps, "upgrade")
            hosted = self.options.hosted or is_old or _has_step(story.steps, "crash")
            self.stage = open_stage(replace(env, older=is_old), self.factory, hosted=hosted, shim=shim)
            await self._steps(self.stage, able)

    async def _retrieve(self, retrieval: Retrieval, env: Environment, limit: asyncio.Timeout) -> None:
        story, options = self.case.story, self.options
        hurries = story.measure and not options.is_named and retrieval.within is None
        seconds = CORPUS_SECONDS if hurries else retrieval.within
        plan = TaskPlan(
            task=await asyncio.to_thread(self._task, retrieval),
            retrieval=retrieval,
            perturb=story.perturb,
            seed=env.seed,
            base=self.bounds.base,
            anywhere=options.any_path,
            limit=None if seconds is None else Limit(seconds, is_for_unnamed=hurries),
            histories=options.histories,
            key=(self.case.id, story.digest, retrieval.depth, dict(env.options), self._answering),
            answers=options.answers,
        )
        records = run_retrieval(plan, env, self.factory, self._progress(limit), hosted=options.hosted)
        async for record, about in records:
            self.parts["retrieval"] = (*self.parts.get("retrieval", ()), record)
            self.parts["about"] = {**about, **self._answering}

    def _task(self, retrieval: Retrieval) -> RetrievalTask:
        task = load_task(retrieval, self.bounds.base, anywhere=self.options.any_path)
        if self.options.sample is not None:
            task = sample_of(task, self.options.sample)
        return task if retrieval.sample is None else sample_questions(task, retrieval.sample, retrieval.seed)

    def _shim(self, able: frozenset[Capability], env: Environment) -> Shim | None:
        chats, case = self.options.chats, self.case
        if chats is None or "chat" not in case.story.needs or not gives_chat_to(case.target, able):
            return None
        return chats.shim(able, env.options)

    async def _steps(self, stage: Stage, able: frozenset[Capability]) -> None:
        self.performer = Performer(
            stage,
            self.bounds,
            self.holds,
            able=able,
            in_files="delete.erases" in self.case.story.needs,
            settles=self.case.story.settles,
            judge=self.options.judge,
        )
        stage.has_clock = "clock" in able
        await stage.open()
        about = await stage.target.perform(Request.of(Target.about))
        self.parts["about"] = {**self.parts.get("about", {}), **about, **(stage.shim.about if stage.shim else {})}
        if stage.agent is not None:
            self.parts["tools"] = tuple(stage.agent.tools)
        elif "tool.schema" in able:
            self.parts["tools"] = tuple(await stage.target.perform(Request.of(Target.tools)))
        await self.performer.perform(self.case.story.steps, self.branch)
        await self.performer.faults.end(stage)

    def failure(self, error: Exception) -> Failure:
        """Return why the run ended; what two cases say alike is the same text, whichever folder they had."""
        failure = failure_of(error, self.case.target, self.performer.place if self.performer else ())
        message = failure.message.replace(str(self.bounds.workspace), "WORKSPACE")
        is_opening = failure.kind == "error" and not failure.step
        return replace(failure, message=f"{OPENING}: {message}" if is_opening else message)

    def timed_out(self, error: Exception) -> Failure:
        """Return where the run was when its time was over."""
        failure = self.failure(error)
        where = f"step {'.'.join(str(index + 1) for index in failure.step)}" if failure.step else OPENING
        seconds = self.options.seconds(self.case)
        return replace(
            failure, kind="error", message=f"timed out after {seconds:g} s in {where}; --case-timeout allows more"
        )

    async def close(self, failure: Failure | None = None) -> Failure | None:
        """Close the target; one that cannot close is reported, unless the case broke earlier."""
        if self.stage is None:
            return failure
        try:
            await self.stage.close()
        except Exception as error:  # noqa: BLE001  (the rim: any error of a backend becomes a recorded failure)
            return failure or self.failure(error)
        return failure


def _refuse_what_cannot_run(case: Case, able: frozenset[Capability]) -> None:
    missing = sorted(case.story.needs - able)
    if missing:
        shared = "" if "scope.names" in able else IS_SHARED
        raise NotSupported(missing[0], f"'{case.target}'{shared}{LACKS}{', '.join(missing)}")


def _has_step(steps: Sequence[Step], word: str) -> bool:
    return any(step.op == word or _has_step(step.steps, word) for step in steps)
