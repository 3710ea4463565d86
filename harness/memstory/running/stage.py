"""The state of a running case: its environment, its open target, its clock, the current session of each user."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from pathlib import Path

from memstory.case import Case
from memstory.contract.clock import StoryClock
from memstory.contract.errors import NotSupported, Refused, TargetError
from memstory.contract.target import Connection, Environment, Request, Scope, Target, TargetFactory, Tree, Usage
from memstory.language.story_paths import Bounds
from memstory.models.shim import Agent, Shim
from memstory.results.recording import Footprint
from memstory.running.footprint import footprint_of
from memstory.running.hosting.guarded import AskedTarget, GuardedTarget
from memstory.running.hosting.host import HostedTarget

FIRST_SESSION = "session-1"
CLOSING_SECONDS = 10.0
KILLED = f" by signal {signal.SIGKILL:d} "


@dataclass(slots=True, kw_only=True)
class Sessions:
    """The current session of each user; `begin` without a name counts on."""

    present: dict[str, str] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)

    def of(self, user: str) -> str:
        """Return the user's present session."""
        return self.present.get(user, FIRST_SESSION)

    def begin(self, user: str, name: str | None = None) -> str:
        """Go on in a new session."""
        self.begun[user] = self.begun.get(user, 1) + 1
        self.present[user] = name or f"session-{self.begun[user]}"
        return self.present[user]


@dataclass(slots=True, kw_only=True)
class Stage:
    """One open memory in its environment; `make` returns a fresh target of the same factory.

    `is_shared` says that other cases write to the same memory, `has_clock` that it goes by the story's clock.
    `other` is the stage of a second process that has the same memory open, from when a step first asks for it.
    `agent` talks in place of a target that does not chat, where there is a `shim`; it goes with the target that it
    talks for.
    """

    env: Environment
    clock: StoryClock
    make: Callable[[], Connection]
    make_other: Callable[[], Connection]
    target: Connection
    other: Stage | None = None
    is_shared: bool = False
    has_clock: bool = False
    sessions: Sessions = field(default_factory=Sessions)
    shim: Shim | None = None
    agent: Agent | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> None:
        await self.target.open(self.env, self.clock)
        self.agent = self.shim.agent(self.target) if self.shim else None

    async def open_other(self) -> Stage:
        """Return the stage of the second process, which stays open until this one is closed."""
        async with self.opening:
            if self.other is None:
                other = replace(self, target=self.make_other(), shim=None, agent=None)
                await other.open()
                self.other = other
            return self.other

    def usage(self) -> Usage:
        """Return what the memory has used so far, with the language model that talks for it."""
        usage, talking = self.target.usage(), self.agent.use if self.agent else None
        return replace(usage, model=usage.model + talking if usage.model else talking) if talking else usage

    async def footprint(self) -> Footprint:
        """Return what the memory takes of the machine now."""
        process = self.target.pid if isinstance(self.target, HostedTarget) else None
        workspace = Path(self.env.workspace)
        return await asyncio.to_thread(partial(footprint_of, workspace, *host_folders(workspace), process=process))

    async def settle(self) -> None:
        """Wait until the target has done its background work."""
        await self.target.perform(Request.of(Target.settle))

    async def move_to(self, moment: datetime) -> None:
        """Move the clock; return when the target has done what was due."""
        await self.clock.advance_to(moment, self.settle)
        await self.target.perform(Request.of(Target.time_moved))
        await self.settle()

    async def wait(self, span: timedelta) -> None:
        """Let time pass: the story's, or real time where the target goes by that."""
        if not self.has_clock:
            await asyncio.sleep(span.total_seconds())
        await self.move_to(self.clock.now() + span)

    async def close(self) -> None:
        """Close the target; one that does not come to its end is a TargetError."""
        if self.other is not None:
            other, self.other = self.other, None
            await other.close()
        limit = asyncio.timeout(CLOSING_SECONDS)
        try:
            async with limit:
                await self.target.close()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TargetError(f"the target did not close within {CLOSING_SECONDS:g} s") from error

    async def reopen(self, between: Callable[[], None] | None = None) -> None:
        """Close, do what comes `between`, then open the same environment again."""
        await self.close()
        if between is not None:
            await asyncio.to_thread(between)
        await self.revive()

    async def change_embedder(self) -> None:
        """Reopen with another embedding model.

        Raises:
            Refused: the memory declined, and is open with its own model again.
            TargetError: it names the same model as before, so that nothing was changed.
        """
        own, before = self.env, await self.target.perform(Request.of(Target.about))
        self.env = replace(own, other_embedder=True)
        try:
            await self.reopen()
        except Refused:
            self.env = own
            await self.revive()
            raise
        if (await self.target.perform(Request.of(Target.about))).get("embedder") == before.get("embedder"):
            raise TargetError("the other embedder did not land: the target names the same `embedder` as before")

    async def change_release(self, *, older: bool) -> None:
        """Reopen with the release of today, or with the older one.

        Raises:
            Refused: the older release does not open what today's wrote, which is open with today's again.
        """
        own = self.env
        self.env = replace(own, older=older)
        try:
            await self.reopen()
        except (Refused, TargetError) as error:
            if not older:
                raise
            self.env = own
            await self.revive()
            raise Refused(f"the older release does not open it: {error}") from error

    async def kill(self) -> None:
        """End the target's process and its children at once, as a power cut would; TargetError if it had ended."""
        if not isinstance(self.target, HostedTarget):
            raise NotSupported("crash", "this target runs inside the harness and cannot be killed")
        how = await self.target.kill()
        if how is None or not how.startswith(KILLED):
            end = "there was no process" if how is None else f"the process ended by itself{how}"
            raise TargetError(f"the crash did not land: {end}, so that this shows nothing")

    async def revive(self) -> None:
        """Open the same environment with a new target, which knows nothing of the one before."""
        self.target = self.make()
        await self.open()

    def scope(self, user: str | None, session: str | None, *, in_session: bool) -> Scope:
        """Return whose memory a step touches; where others share it, a user of the story is made this case's own."""
        own = self.env.owner
        owner = own if user is None else f"{own}.{user}" if user and self.is_shared else user
        if session is None and in_session:
            session = self.sessions.of(owner)
        return Scope(user=owner, session=session)


def open_stage(env: Environment, factory: TargetFactory, *, hosted: bool, shim: Shim | None = None) -> Stage:
    """Return a stage whose folder and target are made, but not open; a hosted target lives in its own process."""
    workspace = Path(env.workspace)
    workspace.mkdir(parents=True, exist_ok=True)

    own, others = host_folders(workspace)

    hosted = hosted or factory.isolates(env.options)

    def make() -> Connection:
        target: Connection = (
            HostedTarget(factory, own) if hosted else GuardedTarget(factory.target(), factory.abilities(env.options))
        )
        return AskedTarget(target) if env.preloaded else target

    return Stage(
        env=env,
        clock=StoryClock(),
        make=make,
        make_other=lambda: HostedTarget(factory, others),
        target=make(),
        is_shared=factory.shares(env.options),
        shim=shim,
    )


def host_folders(workspace: Path) -> Sequence[Path]:
    """Return where the child processes of a case keep what is theirs: beside its workspace, which is the memory's."""
    return [workspace.with_name(f"{workspace.name}.{name}") for name in ("host", "other")]


def owner_of(story_id: str, seed: int) -> str:
    """Return the user id of a case: its own for every story and seed, the same in every run.

    >>> owner_of("S5", 0)
    's5-b47312'
    """
    slug = re.sub(r"[^a-z0-9]+", "-", story_id.lower()).strip("-")
    return f"{slug}-{blake2b(f'{story_id}/{seed}'.encode(), digest_size=3).hexdigest()}"


def make_environment(case: Case, bounds: Bounds, *, seed: int, options: Mapping[str, Tree]) -> Environment:
    """Return all that `case` decides about its target; the story's own options win over those of the run.

    Raises:
        StoryError: one of the story's options names a path out of `bounds`; those of the run may name any.
    """
    story = case.story
    bounds.check("options", story.options, story.mark)
    return Environment(
        workspace=str(bounds.workspace),
        owner=owner_of(story.id, seed),
        seed=seed,
        options={**options, **bounds.whole(story.options)},
        vectors=story.vectors,
        model_rules=story.model,
    )


def for_collection(env: Environment, number: int) -> Environment:
    """Return `env` with its own folder and owner for one collection of a retrieval task."""
    return replace(env, workspace=str(Path(env.workspace) / f"collection-{number}"), owner=f"{env.owner}.c{number}")
