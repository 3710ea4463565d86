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

from memstory.case import Case
from memstory.chat import Chats, Shim, gives_chat_to
from memstory.datasets import load_task
from memstory.errors import NotSupported
from memstory.language.story import Step
from memstory.requests import About, AnnounceTools
from memstory.results.recording import Failure, Recording
from memstory.running.asking import Asked, Progress, run_retrieval
from memstory.running.environments import make_environment
from memstory.running.failures import failure_of
from memstory.running.performer import Branch, Holds, Performer
from memstory.running.stage import Stage, open_stage
from memstory.target import Capability, Environment, Json, TargetFactory

CASE_SECONDS = 60.0
"""How long the steps of a case may take."""

RETRIEVAL_SECONDS = 3600.0
"""How long a retrieval task may take: real data are embedded first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a case may take, by what it does."""

    case_seconds: float = CASE_SECONDS
    retrieval_seconds: float = RETRIEVAL_SECONDS


@dataclass(slots=True, kw_only=True)
class _Run:
    """What one run has come to, filled while it goes on, so that a run cut short keeps what it did."""

    target: str
    branch: Branch = field(default_factory=Branch)
    parts: dict[str, Any] = field(default_factory=dict)
    stage: Stage | None = None
    performer: Performer | None = None

    @property
    def place(self) -> tuple[int, ...]:
        return self.performer.place if self.performer else ()


async def run(
    case: Case,
    factory: TargetFactory,
    workspace: Path,
    *,
    trial: int = 0,
    seed: int = 0,
    options: Mapping[str, Json] | None = None,
    limits: Limits | None = None,
    holds: Holds | None = None,
    progress: Progress | None = None,
    hosted: bool = False,
    base: Path | None = None,
    chats: Chats | None = None,
) -> Recording:
    """Return what happened; whatever went wrong is in `failure`, nothing is raised.

    `workspace` is a folder of this run's own, empty or yet to be made. `holds` says when a step with `eventually` need
    not be asked again; `hosted` puts the target into a process of its own, which a story with `crash` gets anyway.
    `base` is the folder of the story's file, from which the paths of its corpora are read. With `chats`, a story that
    talks with a backend that cannot goes through the chat shim.
    """
    begun = perf_counter()
    limits = limits or Limits()
    state = _Run(target=case.target)
    seconds = limits.retrieval_seconds if case.story.retrieval else limits.case_seconds
    failure: Failure | None = None
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            env = make_environment(case, workspace, seed=seed, options=options or {})
            able = factory.capabilities(env.options)
            shim = _shim(case, able, env, chats)
            if shim is not None:
                able, env = shim.able, shim.environment(env)
            _refuse_what_cannot_run(case, able)
            if case.story.retrieval:
                task = await asyncio.to_thread(load_task, case.story.retrieval, base or _folder(case))
                asked = Asked(task=task, retrieval=case.story.retrieval, perturb=case.story.perturb, seed=seed)
                await _run_task(asked, state, env=env, factory=factory, progress=progress, hosted=hosted)
            if case.story.steps:
                stage = open_stage(env, factory, hosted=hosted or _crashes(case.story.steps), shim=shim)
                await _run_steps(case, stage, able, state, holds)
    except Exception as error:  # noqa: BLE001  (the rim: any error of a backend becomes a recorded failure)
        failure = _failure(error, state, seconds if limit.expired() else None)
    except asyncio.CancelledError:
        await _close(state, None)
        raise
    failure = await _close(state, failure)
    return Recording(
        story=case.story.id,
        target=case.target,
        trial=trial,
        seed=seed,
        steps=tuple(state.branch.records),
        failure=failure,
        seconds=perf_counter() - begun,
        **state.parts,
    )


def _refuse_what_cannot_run(case: Case, able: frozenset[Capability]) -> None:
    missing = sorted(case.story.needs - able)
    if missing:
        raise NotSupported(missing[0], f"'{case.target}' does not support {', '.join(missing)}")


def _shim(case: Case, able: frozenset[Capability], env: Environment, chats: Chats | None) -> Shim | None:
    if chats is None or "chat" not in case.story.needs or not gives_chat_to(case.target, able):
        return None
    return chats.shim(able, env.options)


def _folder(case: Case) -> Path:
    return Path(case.story.mark.file).parent


async def _run_task(
    asked: Asked, state: _Run, *, env: Environment, factory: TargetFactory, progress: Progress | None, hosted: bool
) -> None:
    async for record, about in run_retrieval(asked, env, factory, progress, hosted=hosted):
        state.parts["retrieval"] = (*state.parts.get("retrieval", ()), record)
        state.parts["about"] = dict(about)


async def _run_steps(case: Case, stage: Stage, able: frozenset[Capability], state: _Run, holds: Holds | None) -> None:
    state.stage, state.performer = stage, Performer(stage, holds, settles=case.story.settles)
    await stage.open()
    state.parts["about"] = {**await stage.target.perform(About()), **(stage.shim.about if stage.shim else {})}
    if stage.agent is not None:
        state.parts["tools"] = tuple(stage.agent.tools)
    elif "tool.schema" in able:
        state.parts["tools"] = tuple(await stage.target.perform(AnnounceTools()))
    await state.performer.perform(case.story.steps, state.branch)


def _crashes(steps: Sequence[Step]) -> bool:
    return any(step.op == "crash" or _crashes(step.steps) for step in steps)


def _failure(error: Exception, state: _Run, seconds: float | None) -> Failure:
    failure = failure_of(error, state.target, state.place)
    if seconds is None:
        return failure
    where = f"step {'.'.join(str(index + 1) for index in state.place)}" if state.place else "opening the target"
    return replace(
        failure, kind="error", message=f"timed out after {seconds:g} s in {where}; --case-timeout allows more"
    )


async def _close(state: _Run, failure: Failure | None) -> Failure | None:
    """Close whatever came before; a target that cannot close is reported, unless the case broke earlier."""
    if state.stage is None:
        return failure
    try:
        await state.stage.close()
    except Exception as error:  # noqa: BLE001  (the rim: any error of a backend becomes a recorded failure)
        return failure or failure_of(error, state.target, state.place)
    return failure
